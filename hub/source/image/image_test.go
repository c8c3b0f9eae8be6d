// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"fmt"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/image"
	"kumodo.io/convoy/hub/source/registrytest"
)

var zeros = "sha256:" + strings.Repeat("0", 64)

func TestAReferenceIsReadAsContainerRuntimesReadIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]image.Reference{
		"nginx":                           {Registry: "docker.io", Repository: "library/nginx", Tag: "latest"},
		"nginx:1.27":                      {Registry: "docker.io", Repository: "library/nginx", Tag: "1.27"},
		"grafana/grafana":                 {Registry: "docker.io", Repository: "grafana/grafana", Tag: "latest"},
		"index.docker.io/nginx":           {Registry: "docker.io", Repository: "library/nginx", Tag: "latest"},
		"ghcr.io/a/b/c:v1":                {Registry: "ghcr.io", Repository: "a/b/c", Tag: "v1"},
		"localhost/app":                   {Registry: "localhost", Repository: "app", Tag: "latest"},
		"localhost:5000/app:2":            {Registry: "localhost:5000", Repository: "app", Tag: "2"},
		"registry.test:5000/app@" + zeros: {Registry: "registry.test:5000", Repository: "app", Digest: zeros},
		"nginx:1@" + zeros:                {Registry: "docker.io", Repository: "library/nginx", Tag: "1", Digest: zeros},
	} {
		if got, err := image.Parse(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "nginx:", "NGINX", "https://ghcr.io/a", "a b", "nginx@sha256:1", "ghcr.io/", "a?b"} {
		if got, err := image.Parse(text); fault.ClassOf(err) != fault.ClassInvalid {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
}

func TestATagIsLookedUpWithTheCredentialsOfItsRegistryOnly(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t, false)
	registry.User, registry.Password, registry.Token = "user", "secret", true
	index := []byte(`{"schemaVersion":2,"mediaType":"` + ocispec.MediaTypeImageIndex + `","manifests":[]}`)
	want := registry.Push(t, "team/app", "v1", index).Digest.String()
	ca := endpoint.Remote{URL: "oci://" + registry.Host() + "/x", CA: registry.CA()}
	good, wrong := ca, ca
	good.Docker = fmt.Appendf(nil, `{"auths":{%q:{"username":"user","password":"secret"}}}`, registry.Host())
	wrong.Docker = []byte(`{"auths":{"other.test":{"username":"user","password":"secret"}}}`)
	reference := registry.Host() + "/team/app:v1"

	got, err := image.Resolve(t.Context(), registrytest.Loopback, []endpoint.Remote{{URL: "https://other.test", Auth: endpoint.Auth{Username: "x"}}, good}, reference)
	if err != nil || got != want {
		t.Errorf("got %s, %v, want %s, that of the index", got, err, want)
	}
	if _, err := image.Resolve(t.Context(), registrytest.Loopback, []endpoint.Remote{wrong}, reference); fault.ClassOf(err) != fault.ClassAuth {
		t.Errorf("with credentials of another registry: %v", err)
	}
	if got, err := image.Resolve(t.Context(), registrytest.Loopback, nil, "nginx@"+zeros); err != nil || got != zeros {
		t.Errorf("a digest needs nobody: %s, %v", got, err)
	}
}
