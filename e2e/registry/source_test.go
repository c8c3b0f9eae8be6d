// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry/remote"

	"kumodo.io/convoy/e2e/registry"
	"kumodo.io/convoy/hub/source/address"
	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/helmrepo"
	"kumodo.io/convoy/hub/source/image"
	"kumodo.io/convoy/hub/source/oci"
	source "kumodo.io/convoy/hub/source/registry"
	"kumodo.io/convoy/hub/source/registrytest"
)

const (
	mediaFlux  = "application/vnd.cncf.flux.content.v1.tar+gzip"
	mediaChart = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// from is what a hub would reach a repository with.
func from(t *testing.T, r *registry.Registry, path string) endpoint.Remote {
	t.Helper()
	docker, err := os.ReadFile(r.DockerConfig)
	if err != nil {
		t.Fatal(err)
	}
	return endpoint.Remote{
		URL: "oci://" + r.Host + "/" + path, CA: r.CA, Auth: endpoint.Auth{Docker: docker},
		Policy: address.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	}
}

// push an artifact of one layer, as oras does it.
func push(t *testing.T, to *remote.Repository, tag, mediaType string, data []byte, o oras.PackManifestOptions) ocispec.Descriptor {
	t.Helper()
	layer, err := oras.PushBytes(t.Context(), to, mediaType, data)
	if err != nil {
		t.Fatal(err)
	}
	if o.Layers == nil {
		o.Layers = []ocispec.Descriptor{layer}
	} else {
		o.Layers[0].MediaType, o.Layers[0].Digest, o.Layers[0].Size = layer.MediaType, layer.Digest, layer.Size
	}
	manifest, err := oras.PackManifest(t.Context(), to, oras.PackManifestVersion1_1, "application/vnd.test", o)
	if err != nil {
		t.Fatal(err)
	}
	if tag != "" {
		if err := to.Tag(t.Context(), manifest, tag); err != nil {
			t.Fatal(err)
		}
	}
	return manifest
}

func TestAnArtifactThatOrasHasPushedIsFetched(t *testing.T) {
	t.Parallel()
	name := fmt.Sprintf("team/app-%d", repositories.Add(1))
	to := client(t, deleting, name)
	for _, version := range []string{"1.0.0", "1.2.0", "2.0.0-rc.1"} {
		push(t, to, version, mediaFlux, registrytest.Tgz(t, registrytest.Entry{Name: "app.yaml", Data: "version: " + version}), oras.PackManifestOptions{})
	}
	remote := from(t, deleting, name)
	resolved, err := oci.Resolve(t.Context(), remote, oci.Ref{Semver: ">=1.0.0"})
	if err != nil || resolved.Tag != "1.2.0" {
		t.Fatalf("resolved %+v, %v", resolved, err)
	}
	dir := t.TempDir()
	if _, err := source.Fetch(t.Context(), source.Job{Remote: remote, Artifact: &resolved, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if files := registrytest.Files(t, dir); files["app.yaml"] != "version: 1.2.0" {
		t.Errorf("files %v", files)
	}
	digest, err := image.Resolve(t.Context(), remote.Policy, []endpoint.Remote{remote}, deleting.Host+"/"+name+":1.2.0")
	if err != nil || digest != resolved.Digest {
		t.Errorf("as an image %s, %v, want %s", digest, err, resolved.Digest)
	}
	for what, change := range map[string]func(*endpoint.Remote){
		"without credentials": func(r *endpoint.Remote) { r.Auth = endpoint.Auth{} },
		"with wrong ones":     func(r *endpoint.Remote) { r.Auth = endpoint.Auth{Username: registry.User, Password: "wrong"} },
	} {
		other := remote
		change(&other)
		if _, err := oci.Resolve(t.Context(), other, oci.Ref{Tag: "1.0.0"}); err == nil || fault.ClassOf(err) != fault.ClassAuth {
			t.Errorf("%s: %v of class %s", what, err, fault.ClassOf(err))
		}
	}
	if _, err := oci.Resolve(t.Context(), remote, oci.Ref{Tag: "nope"}); err == nil || fault.ClassOf(err) != fault.ClassNotFound {
		t.Errorf("no such tag: %v of class %s", err, fault.ClassOf(err))
	}
	if err := oci.Ping(t.Context(), from(t, deleting, "team")); err != nil {
		t.Errorf("ping: %v", err)
	}
}

func TestAChartIsFetchedOnlyIfItIsSigned(t *testing.T) {
	t.Parallel()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	sign := func(text []byte) []byte {
		sum := sha256.Sum256(text)
		signature, err := ecdsa.SignASN1(rand.Reader, private, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	for _, c := range []struct {
		name string
		sign func(t *testing.T, to *remote.Repository, subject ocispec.Descriptor)
	}{
		{"by a payload under a tag", func(t *testing.T, to *remote.Repository, subject ocispec.Descriptor) {
			payload := fmt.Appendf(nil, `{"critical":{"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"}}`, subject.Digest)
			push(t, to, strings.Replace(subject.Digest.String(), ":", "-", 1)+".sig", "application/vnd.dev.cosign.simplesigning.v1+json", payload, oras.PackManifestOptions{
				Layers: []ocispec.Descriptor{{Annotations: map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(sign(payload))}}},
			})
		}},
		{"by a bundle that refers to it", func(t *testing.T, to *remote.Repository, subject ocispec.Descriptor) {
			const kind = "application/vnd.in-toto+json"
			statement := fmt.Appendf(nil, `{"subject":[{"digest":{"sha256":%q}}],"predicateType":"https://sigstore.dev/cosign/sign/v1"}`, subject.Digest.Encoded())
			text, err := json.Marshal(map[string]any{"dsseEnvelope": map[string]any{"payload": statement, "payloadType": kind, "signatures": []any{
				map[string]any{"sig": sign(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(statement), statement))},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			const media = "application/vnd.dev.sigstore.bundle.v0.3+json"
			layer, err := oras.PushBytes(t.Context(), to, media, text)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := oras.PackManifest(t.Context(), to, oras.PackManifestVersion1_1, media, oras.PackManifestOptions{Subject: &subject, Layers: []ocispec.Descriptor{layer}}); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			folder := fmt.Sprintf("charts-%d", repositories.Add(1))
			to := client(t, deleting, folder+"/web")
			subject := push(t, to, "1.0.0", mediaChart, registrytest.Chart(t, "web", "1.0.0"), oras.PackManifestOptions{})
			remote := from(t, deleting, folder)
			chart, err := helmrepo.Resolve(t.Context(), remote, "web", "^1")
			if err != nil || chart.Digest != subject.Digest.String() {
				t.Fatalf("resolved %+v, %v", chart, err)
			}
			job := source.Job{Remote: remote, Chart: &chart, Verify: true, Keys: [][]byte{key}, Dir: t.TempDir()}
			if _, err := source.Fetch(t.Context(), job); fault.ClassOf(err) != fault.ClassSignature {
				t.Errorf("before it is signed: %v", err)
			}
			c.sign(t, to, subject)
			done, err := source.Fetch(t.Context(), job)
			if want := fmt.Sprintf("sha256:%x", sha256.Sum256(der)); err != nil || done.Signer != want {
				t.Fatalf("signed by %s, %v, want %s", done.Signer, err, want)
			}
			if files := registrytest.Files(t, job.Dir); !bytes.Contains([]byte(files["web/Chart.yaml"]), []byte("name: web")) {
				t.Errorf("files %v", files)
			}
		})
	}
}
