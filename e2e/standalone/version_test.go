// SPDX-License-Identifier: Apache-2.0

package standalone_test

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
)

// chance is a template whose output is another one each time.
const chance = `{{- $ca := genCA "shop" 30 }}
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data:
  key: {{ .Values.key | quote }}
  ca: {{ $ca.Cert | b64enc }}
  word: {{ randAlphaNum 16 }}
  api: {{ .Capabilities.APIVersions.Has "apps/v1" | quote }}
`

func TestAHubOfAnotherVersionRendersNothingAnew(t *testing.T) {
	w := newWorld(t)
	const newer = "v99.0.0"
	next := filepath.Join(w.dir, "convoy-hub-next")
	w.must(harness.BuildProgram(t.Context(), "./hub", next, "-ldflags=-X kumodo.io/convoy/pkg/version.Version="+newer))
	commit := w.commit(map[string]string{
		"plain/a.yaml":               configMap("plain", "1"),
		"shop/Chart.yaml":            "apiVersion: v2\nname: shop\nversion: 0.1.0\n",
		"shop/values.yaml":           "key: \"1\"\n",
		"shop/templates/a.yaml":      chance,
		"over/kustomization.yaml":    "resources: [../base]\nnamePrefix: over-\n",
		"base/kustomization.yaml":    "resources: [a.yaml]\n",
		"base/a.yaml":                configMap("base", "1"),
		"unrelated/readme-of-nobody": "1\n",
	})
	w.source()
	mutation := map[string]any{"type": "goTemplate", "inline": []any{"metadata: {labels: {site: '{{ .cluster.name }}'}}"}}
	for name, spec := range map[string]map[string]any{"plain": {"mutations": []any{mutation}}, "shop": nil, "over": nil} {
		w.release(name, name, spec)
	}
	state := func() map[string]v1alpha1.ReleaseStatus {
		out := map[string]v1alpha1.ReleaseStatus{}
		for _, name := range []string{"plain", "shop", "over"} {
			out[name] = w.until(name, readyAt(commit)).Status
		}
		return out
	}
	before := state()
	written := releases(w.changes())
	word := func() string {
		have, err := w.onEdge(w.deadline(), "shop")
		w.must(err)
		return have.Data["word"]
	}
	had := word()

	w.stopHub(false)
	w.programs.Hub = next
	w.startHub()
	w.untilSession()
	w.pass(12 * time.Second) // a resync looks at each Release
	if diff := cmp.Diff(before, state()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(written, releases(w.changes())); diff != "" {
		t.Errorf("Releases that were written (-before +after):\n%s", diff)
	}
	if got := word(); got != had {
		t.Errorf("the word on the edge is %q, and was %q", got, had)
	}

	// A sync looks at the source again, and finds the inputs as they were.
	asked := w.sync("shop", false)
	after := w.until("shop", func(r *v1alpha1.Release) bool {
		return r.Status.LastSyncRequest == asked && has(r, "Ready", metav1.ConditionTrue, "")
	})
	if after.Status.RenderRef != before["shop"].RenderRef || after.Status.Render.Renderer == newer {
		t.Errorf("render %s by %s, want %s by the hub before", after.Status.RenderRef, after.Status.Render.Renderer, before["shop"].RenderRef)
	}
}

// releases are the keys of Releases.
func releases(changes map[string]int64) map[string]int64 {
	maps.DeleteFunc(changes, func(key string, _ int64) bool { return !strings.Contains(key, "/releases/") })
	return changes
}
