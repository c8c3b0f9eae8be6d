// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render"
	"kumodo.io/convoy/hub/render/content"
)

// TestKU04NoReferenceOfAKustomizationIsDialed holds the spellings of a base on another
// machine against a listener, in whole renders in a worker.
func TestKU04NoReferenceOfAKustomizationIsDialed(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var count atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			count.Add(1)
			_ = connection.Close() // whoever it was, it should not be there
		}
	}()
	address := listener.Addr().String()
	url := "http://" + address + "/team/base"
	w := newWorld(t)
	for name, text := range map[string]string{
		"git::":             "resources: ['git::" + url + "']",
		"?ref=":             "resources: ['" + url + "?ref=main']",
		"scp style":         "resources: ['git@" + address + "/team/base.git']",
		"components":        "components: ['" + url + "?ref=v1']",
		"openapi.path":      "openapi: {path: '" + url + "/schema.json'}",
		"replacements.path": "replacements: [{path: '" + url + "/r.yaml'}]",
	} {
		_, err := w.render(t, tree{"app/kustomization.yaml": text + "\n"})
		var e *render.Error
		if !errors.As(err, &e) || e.Reason() != v1alpha1.ReasonRenderFailed || !strings.Contains(err.Error(), "app/kustomization.yaml: ") || !strings.Contains(err.Error(), "nothing is fetched for a kustomization") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	<-done
	if n := count.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

func TestYA05DocumentsThatEndKustomizeAreRefusedInAWorker(t *testing.T) {
	w := newWorld(t)
	for _, step := range []string{"v2", "v3", "v4"} {
		files := caseTree(t, "YA-05", step)
		var names []string
		for name := range files {
			names = append(names, strings.TrimPrefix(name, "app/"))
		}
		files["app/kustomization.yaml"] = "resources: [" + strings.Join(names, ", ") + "]\n"
		_, err := w.render(t, files)
		wantFailure(t, err, v1alpha1.ReasonRenderFailed, "app/"+names[0])
	}
}

func TestAMutatedKustomizationAsksOnlyWhatItsTemplatesRead(t *testing.T) {
	w := newWorld(t)
	work := job("team", tree{
		"app/kustomization.yaml": "resources: [cm.yaml]\nnamePrefix: x-\n",
		"app/cm.yaml":            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n",
	})
	work.Content.Mutations = []content.Mutation{{Name: "site", Type: v1alpha1.MutationGoTemplate, Bodies: []string{"metadata: {labels: {site: '{{ .cluster.name }}'}}"}}}
	work.Content.World.Cluster["region"] = "eu"
	result, err := w.Render(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	metadata, _ := w.objectsOf(t, result)["ConfigMap x-cm"]["metadata"].(map[string]any)
	if labels, _ := metadata["labels"].(map[string]any); labels["site"] != "edge" {
		t.Errorf("metadata %v", metadata)
	}
	if got := strings.Join(result.Reads, " "); got != "cluster.name" {
		t.Errorf("reads %q", got)
	}
}

func TestMU01AMutationChangesItsFieldsAndNothingElseInAWorker(t *testing.T) {
	w := newWorld(t)
	plain, err := w.render(t, caseTree(t, "MU-01", "v1"))
	if err != nil {
		t.Fatal(err)
	}
	work := job("team", caseTree(t, "MU-01", "v1"))
	work.Content.World.Cluster["odd"] = "a\"b - c: \nx"
	work.Content.Mutations = []content.Mutation{
		{Name: "site", Type: v1alpha1.MutationGoTemplate, Bodies: []string{"metadata: {labels: {site: '{{ .cluster.name }}'}}"}},
		{Name: "odd", Type: v1alpha1.MutationGoTemplate, Bodies: []string{"metadata: {annotations: {odd: '{{ .cluster.odd }}'}}"}},
	}
	mutated, err := w.Render(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	want := w.objectsOf(t, plain)["ConfigMap t-mu-01/text"]
	metadata, _ := want["metadata"].(map[string]any)
	metadata["labels"] = map[string]any{"site": "edge"}
	metadata["annotations"] = map[string]any{"odd": "a\"b - c: \nx"}
	if diff := cmp.Diff(want, w.objectsOf(t, mutated)["ConfigMap t-mu-01/text"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	delete(work.Content.World.Cluster, "odd")
	_, err = w.Render(t.Context(), work)
	wantFailure(t, err, v1alpha1.ReasonRenderFailed, `mutation "odd"`, "ConfigMap t-mu-01/text", "cluster.odd, on cluster edge")
}
