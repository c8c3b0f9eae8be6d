// SPDX-License-Identifier: Apache-2.0

// Package cosign checks that an artifact of an OCI registry is signed with one of
// the given keys: a part of the first step of the flow source -> render -> store ->
// deliver -> apply -> observe -> report. What cannot be verified is an error.
//
// Two forms are known. The older one is an artifact under the tag sha256-<hex>.sig;
// each of its layers is a payload, JSON, that names the digest, and an annotation of
// the layer has the signature of the payload. The newer one is a bundle that refers
// to the artifact: an in-toto statement with the digest as its subject, in a DSSE
// envelope. Keys decide alone; certificates and logs of transparency are not looked
// at.
package cosign

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/oci"
)

const (
	mediaSimple         = "application/vnd.dev.cosign.simplesigning.v1+json"
	annotationSignature = "dev.cosignproject.cosign/signature"
	bundlePrefix        = "application/vnd.dev.sigstore.bundle"
)

// Verify looks for a signature of the artifact with that digest by one of the keys
// (public keys, PEM). The signer is sha256:<hex> of the key that was used, over its
// DER form.
func Verify(ctx context.Context, remote endpoint.Remote, digest string, keys [][]byte) (signer string, err error) {
	parsed, err := parseKeys(keys)
	if err != nil {
		return "", err
	}
	if !oci.IsDigest(digest) {
		return "", fault.Failf(fault.ClassInvalid, "%q is no digest", fault.Clean(digest))
	}
	repository, err := oci.Open(ctx, remote)
	if err != nil {
		return "", err
	}
	defer repository.Close()
	v := verification{repository: repository, keys: parsed, digest: digest}
	for _, form := range []func(context.Context) (string, error){v.simple, v.bundles} {
		if signer, err = form(ctx); err != nil || signer != "" {
			return signer, err
		}
	}
	return "", v.refused()
}

// verification of one artifact.
type verification struct {
	repository *oci.Repository
	keys       []key
	digest     string
	tried      int
	last       error
}

// refused says that nothing was found that counts.
func (v *verification) refused() error {
	if v.tried == 0 {
		return fault.Failf(fault.ClassSignature, "%s %s is not signed", v.repository.Name(), v.digest)
	}
	return fault.Failf(fault.ClassSignature, "%s %s: none of %d signatures counts; the last is %w", v.repository.Name(), v.digest, v.tried, v.last)
}

// try notes what became of one signature. An empty signer means that it does not count.
func (v *verification) try(signer string, err error) string {
	v.tried++
	if err != nil {
		v.last = err
		return ""
	}
	return signer
}

// simple looks under the tag that the older form has.
func (v *verification) simple(ctx context.Context) (string, error) {
	_, text, err := v.repository.Manifest(ctx, strings.Replace(v.digest, ":", "-", 1)+".sig")
	if err != nil && fault.ClassOf(err) == fault.ClassNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	layers, err := layersOf(text)
	if err != nil {
		v.try("", errForm)
		return "", nil
	}
	for _, layer := range layers {
		signature := layer.Annotations[annotationSignature]
		if layer.MediaType != mediaSimple || signature == "" {
			continue
		}
		payload, err := v.repository.Blob(ctx, layer, maxPayloadBytes)
		if err != nil {
			return "", err
		}
		if signer := v.try(verifySimple(v.keys, v.digest, payload, signature)); signer != "" {
			return signer, nil
		}
	}
	return "", nil
}

// bundles looks at what refers to the artifact.
func (v *verification) bundles(ctx context.Context) (string, error) {
	subject, err := v.repository.Resolve(ctx, v.digest)
	if err != nil {
		return "", err
	}
	found, err := v.repository.Referrers(ctx, subject, "")
	if err != nil {
		return "", err
	}
	for _, one := range found {
		if !strings.HasPrefix(one.ArtifactType, bundlePrefix) || v.tried >= maxSignatures {
			continue
		}
		_, text, err := v.repository.Manifest(ctx, one.Digest.String())
		if err != nil {
			return "", err
		}
		layers, err := layersOf(text)
		if err != nil {
			v.try("", errForm)
			continue
		}
		for _, layer := range layers {
			bundle, err := v.repository.Blob(ctx, layer, maxPayloadBytes)
			if err != nil {
				return "", err
			}
			if signer := v.try(verifyBundle(v.keys, v.digest, bundle)); signer != "" {
				return signer, nil
			}
		}
	}
	return "", nil
}

var errLayers = errors.New("a manifest without layers, or with too many")

func layersOf(text []byte) ([]ocispec.Descriptor, error) {
	var manifest ocispec.Manifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, err
	}
	if len(manifest.Layers) == 0 || len(manifest.Layers) > maxSignatures {
		return nil, errLayers
	}
	return manifest.Layers, nil
}
