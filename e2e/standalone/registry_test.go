// SPDX-License-Identifier: Apache-2.0

package standalone_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/registry"
)

func TestAHubKeepsItsRendersInARegistry(t *testing.T) {
	supervisor, err := harness.NewSupervisor(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := supervisor.Close(); err != nil {
			t.Errorf("close supervisor: %v", err)
		}
	})
	server, err := registry.Start(t.Context(), supervisor, t.TempDir(), registry.Options{Name: "renders"})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "--render-store-url=oci://"+server.Host+"/convoy/renders", "--render-store-docker-config="+server.DockerConfig, "--render-store-ca-file="+server.CAFile)
	commit := w.commit(map[string]string{"web/a.yaml": configMap("a", "1")})
	w.source()
	w.release("web", "web", nil)
	w.untilEdge("a", "1")
	before := w.until("web", readyAt(commit))

	// Another client lists and pulls what the hub has made.
	repository := other(t, server, "convoy/renders")
	var tags []string
	if err := repository.Tags(t.Context(), "", func(some []string) error { tags = append(tags, some...); return nil }); err != nil {
		t.Fatal(err)
	}
	tag := strings.Replace(before.Status.RenderRef, "sha256:", "objects-", 1)
	if !slices.Contains(tags, tag) {
		t.Errorf("tags %v, without %s", tags, tag)
	}
	_, text, err := oras.FetchBytes(t.Context(), repository.Blobs(), before.Status.RenderRef, oras.DefaultFetchBytesOptions)
	if err != nil || !bytes.Contains(text, []byte(`"kind":"ConfigMap"`)) {
		t.Errorf("pulled %q, %v", text, err)
	}

	// A hub that starts again finds its renders there and makes none.
	w.stopHub(true)
	w.startHub()
	w.untilSession()
	second := w.commit(map[string]string{"web/a.yaml": configMap("a", "2")})
	w.sync("web", false)
	after := w.until("web", readyAt(second))
	w.untilEdge("a", "2")
	if after.Status.History[0].RenderRef != after.Status.RenderRef || len(after.Status.History) < 2 {
		t.Errorf("history %+v", after.Status.History)
	}
	if _, err := os.Stat(filepath.Join(w.data(), "renders", "blobs")); !os.IsNotExist(err) {
		t.Errorf("there are renders in the data directory: %v", err)
	}
}

// other is a client of the registry that is not ours.
func other(t *testing.T, server *registry.Registry, name string) *remote.Repository {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(server.CA)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	repository, err := remote.NewRepository(fmt.Sprintf("%s/%s", server.Host, name))
	if err != nil {
		t.Fatal(err)
	}
	repository.Client = &auth.Client{
		Client:     &http.Client{Transport: transport},
		Credential: auth.StaticCredential(server.Host, auth.Credential{Username: registry.User, Password: registry.Password}),
	}
	return repository
}
