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

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
	"kumodo.io/convoy/e2e/registry"
	"kumodo.io/convoy/hub/source/registrytest"
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
	releasesOfRegistries(w, server)
	if _, err := os.Stat(filepath.Join(w.data(), "renders", "blobs")); !os.IsNotExist(err) {
		t.Errorf("there are renders in the data directory: %v", err)
	}
}

// releasesOfRegistries deploys a chart and an artifact that other clients have pushed.
func releasesOfRegistries(w *world, server *registry.Registry) {
	t := w.t
	t.Helper()
	docker, err := os.ReadFile(server.DockerConfig)
	w.must(err)
	folder := filepath.Join(w.dir, "secrets", team, "registry")
	w.must(os.MkdirAll(folder, 0o700))
	w.must(os.WriteFile(filepath.Join(folder, ".dockerconfigjson"), docker, 0o600))
	w.must(os.WriteFile(filepath.Join(folder, "ca.crt"), server.CA, 0o600))

	chart := registrytest.Tgz(t, registrytest.Entry{Name: "web/Chart.yaml", Data: "apiVersion: v2\nname: web\nversion: 1.2.0\n"},
		registrytest.Entry{Name: "web/values.yaml", Data: "key: default\n"},
		registrytest.Entry{Name: "web/templates/a.yaml", Data: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-map}\ndata: {key: {{ .Values.key | quote }}}\n"})
	push(w, other(t, server, "charts/web"), "1.2.0", "application/vnd.cncf.helm.chart.content.v1.tar+gzip", chart)
	tree := registrytest.Tgz(t, registrytest.Entry{Name: "deploy/a.yaml", Data: configMap("of-artifact", "1")})
	push(w, other(t, server, "team/manifests"), "latest", "application/vnd.cncf.flux.content.v1.tar+gzip", tree)

	secret := map[string]any{"name": "registry"}
	for kind, path := range map[string]string{"HelmRegistry": "charts", "OCIRegistry": "team/manifests"} {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "source.convoy.kumodo.io/v1alpha1", "kind": kind, "metadata": map[string]any{"name": "registry", "namespace": team},
			"spec": map[string]any{"url": "oci://" + server.Host + "/" + path, "secretRef": secret, "caSecretRef": secret},
		}}
		gvr := install.GitRepositories.GroupVersion().WithResource(strings.ToLower(strings.TrimSuffix(kind, "y")) + "ies")
		_, err := w.client.Resource(gvr).Namespace(team).Create(w.deadline(), object, metav1.CreateOptions{})
		w.must(err)
		w.untilObject(gvr, team, "registry", harness.HasCondition("Ready", metav1.ConditionTrue, ""))
	}
	w.release("chart", "", map[string]any{
		"source":  map[string]any{"kind": "HelmRegistry", "name": "registry"},
		"content": map[string]any{"helm": map[string]any{"chart": map[string]any{"name": "web", "version": "1.x"}, "values": map[string]any{"key": "given"}}},
	})
	w.release("artifact", "deploy", map[string]any{"source": map[string]any{"kind": "OCIRegistry", "name": "registry"}})
	// A chart of the Git repository that needs the other one, which wants credentials.
	w.commit(map[string]string{
		"web/a.yaml":          configMap("a", "2"),
		"umbrella/Chart.yaml": fmt.Sprintf("apiVersion: v2\nname: umbrella\nversion: 0.1.0\ndependencies:\n- {name: web, version: 1.x, repository: \"oci://%s/charts\"}\n", server.Host),
	})
	w.release("umbrella", "umbrella", map[string]any{"content": map[string]any{"path": "umbrella", "helm": map[string]any{"values": map[string]any{"web": map[string]any{"key": "through"}}}}})
	w.sync("umbrella", false)
	w.untilEdge("chart-map", "given")
	w.untilEdge("of-artifact", "1")
	w.untilEdge("umbrella-map", "through")
	for _, name := range []string{"chart", "artifact", "umbrella"} {
		w.until(name, func(r *v1alpha1.Release) bool { return has(r, "Ready", metav1.ConditionTrue, "") })
	}
}

// push an artifact of one layer.
func push(w *world, to *remote.Repository, tag, mediaType string, data []byte) {
	w.t.Helper()
	layer, err := oras.PushBytes(w.deadline(), to, mediaType, data)
	w.must(err)
	manifest, err := oras.PackManifest(w.deadline(), to, oras.PackManifestVersion1_1, "application/vnd.test", oras.PackManifestOptions{Layers: []ocispec.Descriptor{layer}})
	w.must(err)
	w.must(to.Tag(w.deadline(), manifest, tag))
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
