// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"

	"kumodo.io/convoy/hub/source/fault"
)

// key is one that may have signed.
type key struct {
	public crypto.PublicKey
	name   string // sha256:<hex> of its DER form
}

// parseKeys reads public keys. One that cannot be used is an error: a set of keys
// that is smaller than it looks is nothing to build on.
func parseKeys(texts [][]byte) ([]key, error) {
	if len(texts) == 0 || len(texts) > maxKeys {
		return nil, fault.Failf(fault.ClassInvalid, "there are %d public keys to verify with; 1 to %d can be used", len(texts), maxKeys)
	}
	keys := make([]key, 0, len(texts))
	for _, text := range texts {
		if len(text) > maxKeyBytes {
			return nil, fault.Failf(fault.ClassTooLarge, "a public key of more than %d KiB", maxKeyBytes>>10)
		}
		block, rest := pem.Decode(text)
		if block == nil || block.Type != "PUBLIC KEY" || len(bytes.TrimSpace(rest)) > 0 {
			return nil, fault.Failf(fault.ClassInvalid, "a public key is written in PEM, as one block PUBLIC KEY")
		}
		public, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fault.Failf(fault.ClassInvalid, "a public key cannot be read: %s", fault.Clean(err.Error()))
		}
		switch k := public.(type) {
		case *ecdsa.PublicKey, ed25519.PublicKey:
		case *rsa.PublicKey:
			if k.N.BitLen() < minRSABits {
				return nil, fault.Failf(fault.ClassInvalid, "an RSA key of %d bits; at least %d are needed", k.N.BitLen(), minRSABits)
			}
		default:
			return nil, fault.Failf(fault.ClassInvalid, "a public key of a kind that is not supported: ECDSA, RSA and Ed25519 are")
		}
		sum := sha256.Sum256(block.Bytes)
		keys = append(keys, key{public: public, name: "sha256:" + hex.EncodeToString(sum[:])})
	}
	return keys, nil
}

// signed reports that the key made the signature of the text.
func (k key) signed(text, signature []byte) bool {
	switch public := k.public.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(public, digestFor(public, text), signature)
	case *rsa.PublicKey:
		sum := sha256.Sum256(text)
		return rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], signature) == nil
	case ed25519.PublicKey:
		return ed25519.Verify(public, text, signature)
	default:
		return false
	}
}

// digestFor hashes a text with the hash that goes with a curve.
func digestFor(public *ecdsa.PublicKey, text []byte) []byte {
	switch bits := public.Curve.Params().BitSize; {
	case bits > 384:
		sum := sha512.Sum512(text)
		return sum[:]
	case bits > 256:
		sum := sha512.Sum384(text)
		return sum[:]
	default:
		sum := sha256.Sum256(text)
		return sum[:]
	}
}
