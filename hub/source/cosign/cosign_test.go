// SPDX-License-Identifier: Apache-2.0

package cosign_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kumodo.io/convoy/hub/source/cosign"
	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/registrytest"
)

// pair of keys, with how the private one signs.
type pair struct {
	name   string
	public []byte
	sign   func(text []byte) []byte
}

func newPairs(t *testing.T) []pair {
	t.Helper()
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	hashed := func(signer crypto.Signer) func([]byte) []byte {
		return func(text []byte) []byte {
			sum := sha256.Sum256(text)
			signature, err := signer.Sign(rand.Reader, sum[:], crypto.SHA256)
			if err != nil {
				t.Fatal(err)
			}
			return signature
		}
	}
	return []pair{
		{"ECDSA", encode(t, &curve.PublicKey), hashed(curve)},
		{"RSA", encode(t, &large.PublicKey), hashed(large)},
		{"Ed25519", encode(t, public), func(text []byte) []byte { return ed25519.Sign(edwards, text) }},
	}
}

func encode(t *testing.T, public any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func payload(digest string) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":"app"},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, digest)
}

// simple signs as the older form has it.
func simple(t *testing.T, registry *registrytest.Registry, of string, text, signature []byte) {
	t.Helper()
	layer := registry.Blob("application/vnd.dev.cosign.simplesigning.v1+json", text, map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature),
	})
	registry.Push(t, "app", strings.Replace(of, ":", "-", 1)+".sig", registrytest.Manifest(layer))
}

// bundle signs as the newer form has it.
func bundle(t *testing.T, registry *registrytest.Registry, subject ocispec.Descriptor, about, predicate string, p pair) {
	t.Helper()
	statement := fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":%q}`, strings.TrimPrefix(about, "sha256:"), predicate)
	const kind = "application/vnd.in-toto+json"
	signature := p.sign(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(statement), statement))
	text, err := json.Marshal(map[string]any{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "dsseEnvelope": map[string]any{
		"payload": statement, "payloadType": kind, "signatures": []any{map[string]any{"sig": signature}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	manifest := registrytest.Manifest(registry.Blob("application/vnd.dev.sigstore.bundle.v0.3+json", text, nil))
	manifest.ArtifactType, manifest.Subject = "application/vnd.dev.sigstore.bundle.v0.3+json", &subject
	registry.Push(t, "app", "", manifest)
}

const signPredicate = "https://sigstore.dev/cosign/sign/v1"

func TestASignatureByOneOfTheKeysCounts(t *testing.T) {
	t.Parallel()
	pairs := newPairs(t)
	for i, p := range pairs {
		for _, form := range []string{"payload under a tag", "bundle that refers"} {
			t.Run(p.name+", a "+form, func(t *testing.T) {
				t.Parallel()
				registry := registrytest.New(t, false)
				subject := registry.Push(t, "app", "latest", registrytest.Manifest(registry.Blob("application/yaml", []byte("a: 1"), nil)))
				digest := subject.Digest.String()
				if form == "bundle that refers" {
					bundle(t, registry, subject, digest, signPredicate, p)
				} else {
					simple(t, registry, digest, payload(digest), p.sign(payload(digest)))
				}
				signer, err := cosign.Verify(t.Context(), registry.OCI("app"), digest, [][]byte{pairs[(i+1)%3].public, p.public})
				block, _ := pem.Decode(p.public)
				if want := fmt.Sprintf("sha256:%x", sha256.Sum256(block.Bytes)); err != nil || signer != want {
					t.Errorf("got %s, %v, want %s", signer, err, want)
				}
			})
		}
	}
}

func TestWhatIsNotSignedByAKeyIsRefused(t *testing.T) {
	t.Parallel()
	pairs := newPairs(t)
	key, stranger := pairs[0], pairs[2]
	other := "sha256:" + strings.Repeat("1", 64)
	for _, c := range []struct {
		name string
		sign func(t *testing.T, registry *registrytest.Registry, subject ocispec.Descriptor)
		says string
	}{
		{"no signature", func(*testing.T, *registrytest.Registry, ocispec.Descriptor) {}, "is not signed"},
		{"a stranger's", func(t *testing.T, r *registrytest.Registry, s ocispec.Descriptor) {
			simple(t, r, s.Digest.String(), payload(s.Digest.String()), stranger.sign(payload(s.Digest.String())))
		}, "none of the keys"},
		{"one of another artifact", func(t *testing.T, r *registrytest.Registry, s ocispec.Descriptor) {
			simple(t, r, s.Digest.String(), payload(other), key.sign(payload(other)))
		}, "another artifact"},
		{"another payload than was signed", func(t *testing.T, r *registrytest.Registry, s ocispec.Descriptor) {
			simple(t, r, s.Digest.String(), payload(s.Digest.String()), key.sign(payload(other)))
		}, "none of the keys"},
		{"something else that the key signed", func(t *testing.T, r *registrytest.Registry, s ocispec.Descriptor) {
			text := fmt.Appendf(nil, `{"critical":{"image":{"docker-manifest-digest":%q},"type":"other"}}`, s.Digest)
			simple(t, r, s.Digest.String(), text, key.sign(text))
		}, "form is not known"},
		{"a bundle by a stranger", func(t *testing.T, r *registrytest.Registry, s ocispec.Descriptor) {
			bundle(t, r, s, s.Digest.String(), signPredicate, stranger)
		}, "none of the keys"},
		{"a bundle about another artifact", func(t *testing.T, r *registrytest.Registry, s ocispec.Descriptor) {
			bundle(t, r, s, other, signPredicate, key)
		}, "another artifact"},
		{"an attestation, which is no signature", func(t *testing.T, r *registrytest.Registry, s ocispec.Descriptor) {
			bundle(t, r, s, s.Digest.String(), "https://slsa.dev/provenance/v1", key)
		}, "form is not known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			registry := registrytest.New(t, false)
			subject := registry.Push(t, "app", "latest", registrytest.Manifest(registry.Blob("application/yaml", []byte("a: 1"), nil)))
			c.sign(t, registry, subject)
			signer, err := cosign.Verify(t.Context(), registry.OCI("app"), subject.Digest.String(), [][]byte{key.public})
			if fault.ClassOf(err) != fault.ClassSignature || !strings.Contains(err.Error(), c.says) || signer != "" {
				t.Errorf("got %q, %v of class %s, want %q", signer, err, fault.ClassOf(err), c.says)
			}
		})
	}
}

func TestKeysThatCannotBeUsedAreRefused(t *testing.T) {
	t.Parallel()
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Skipf("this Go makes no RSA keys that are too small: %v", err)
	}
	good := newPairs(t)[0].public
	for name, keys := range map[string][][]byte{
		"no key":          nil,
		"no PEM":          {[]byte("key")},
		"a private key":   {pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})},
		"two in one":      {append(good, good...)},
		"a small RSA key": {encode(t, &small.PublicKey)},
		"one of two":      {good, []byte("key")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := registrytest.New(t, false)
			if _, err := cosign.Verify(t.Context(), registry.OCI("app"), "sha256:"+strings.Repeat("1", 64), keys); fault.ClassOf(err) != fault.ClassInvalid {
				t.Errorf("got %v of class %s", err, fault.ClassOf(err))
			}
		})
	}
}
