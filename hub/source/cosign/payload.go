// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Sentinels of signatures that do not count. Verify puts what is wrong with the
// last one into its error.
var (
	errForm    = errors.New("a signature whose form is not known")
	errKey     = errors.New("a signature by none of the keys")
	errSubject = errors.New("a signature of another artifact")
)

const (
	simpleType    = "cosign container image signature"
	payloadInToto = "application/vnd.in-toto+json"
	predicateSign = "https://sigstore.dev/cosign/sign/v1"
)

// verifySimple checks a payload of the older form, and that it is about the digest.
func verifySimple(keys []key, digest string, payload []byte, signature string) (signer string, err error) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(signature))
	if err != nil {
		return "", fmt.Errorf("%w: it is no base64", errForm)
	}
	// The signature comes first: what nobody signed is not parsed.
	if signer, err = signerOf(keys, payload, raw); err != nil {
		return "", err
	}
	var text struct {
		Critical struct {
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
			Type string `json:"type"`
		} `json:"critical"`
	}
	if err := json.Unmarshal(payload, &text); err != nil || text.Critical.Type != simpleType {
		return "", errForm
	}
	if text.Critical.Image.Digest != digest {
		return "", errSubject
	}
	return signer, nil
}

// verifyBundle checks a bundle: an in-toto statement about the digest, in a DSSE
// envelope. A bundle that says something else about the artifact, as an attestation
// does, is no signature of it.
func verifyBundle(keys []key, digest string, bundle []byte) (signer string, err error) {
	var text struct {
		Envelope struct {
			Payload     []byte `json:"payload"`
			PayloadType string `json:"payloadType"`
			Signatures  []struct {
				Signature []byte `json:"sig"`
			} `json:"signatures"`
		} `json:"dsseEnvelope"`
	}
	if err := json.Unmarshal(bundle, &text); err != nil || len(text.Envelope.Payload) == 0 || text.Envelope.PayloadType != payloadInToto {
		return "", errForm
	}
	envelope := text.Envelope
	signedText := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(envelope.PayloadType), envelope.PayloadType, len(envelope.Payload), envelope.Payload)
	err = errKey
	for i, one := range envelope.Signatures {
		if i >= maxSignatures {
			break
		}
		if signer, err = signerOf(keys, signedText, one.Signature); err == nil {
			break
		}
	}
	if err != nil {
		return "", err
	}
	var statement struct {
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
	}
	if err := json.Unmarshal(envelope.Payload, &statement); err != nil || statement.PredicateType != predicateSign {
		return "", errForm
	}
	for _, subject := range statement.Subject {
		if "sha256:"+subject.Digest["sha256"] == digest {
			return signer, nil
		}
	}
	return "", errSubject
}

func signerOf(keys []key, text, signature []byte) (string, error) {
	for _, k := range keys {
		if k.signed(text, signature) {
			return k.name, nil
		}
	}
	return "", errKey
}
