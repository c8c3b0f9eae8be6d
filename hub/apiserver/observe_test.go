// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/apiservertest"
	"kumodo.io/convoy/pkg/tunnel"
)

const releasePath = corePath + "/namespaces/team/releases/shop/"

func TestWhatRunsIsAskedOfTheObserver(t *testing.T) {
	t.Parallel()
	s, p := withObserver(t, nil)
	create(t, newClient(t, s), newRelease("team", "shop", "edge-1"))
	_, err := s.Storage().Releases.UpdateStatus(t.Context(), types.NamespacedName{Namespace: "team", Name: "shop"}, "", func(r *corev1alpha1.Release) error {
		r.Status.RenderRef, r.Status.AppliedRef = "sha256:2", "sha256:1"
		r.Status.History = []corev1alpha1.HistoryEntry{{RenderRef: "sha256:1"}, {RenderRef: "gone"}}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	health := decoded[corev1alpha1.ReleaseHealth](t, raw(t, s, http.MethodGet, releasePath+"health", ""))
	if health.Observation.Live || health.Observation.Message != "Cluster edge-1 is not connected" || len(health.Objects) != 0 {
		t.Errorf("away: %+v", health)
	}
	p.mu.Lock()
	p.live = []tunnel.LiveObject{{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: "a", State: "Healthy", InSync: tunnel.False, Drift: []tunnel.Difference{{Path: "data.a", Wanted: `"1"`, Live: `"2"`}}}}
	p.mu.Unlock()
	if health = decoded[corev1alpha1.ReleaseHealth](t, raw(t, s, http.MethodGet, releasePath+"health", "")); !health.Observation.Live || len(health.Objects) != 1 || health.Kind != "ReleaseHealth" {
		t.Errorf("there: %+v", health)
	}
	diff := decoded[corev1alpha1.ReleaseDiff](t, raw(t, s, http.MethodGet, releasePath+"diff", ""))
	if !diff.Different || len(diff.Drift) != 1 || diff.Drift[0].Fields[0].Path != "data.a" || len(diff.Pending) != 1 || diff.Pending[0].Change != corev1alpha1.ChangeChanged || diff.Kind != "ReleaseDiff" {
		t.Errorf("diff: %+v", diff)
	}
	history := decoded[corev1alpha1.ReleaseHistory](t, raw(t, s, http.MethodGet, releasePath+"history", ""))
	if len(history.Entries) != 2 || !history.Entries[0].Applied || !history.Entries[0].Stored || history.Entries[1].Stored {
		t.Errorf("history: %+v", history)
	}

	file := decoded[corev1alpha1.ReleaseDiff](t, raw(t, s, http.MethodPost, releasePath+"diff", body(t, newRelease("team", "shop", "edge-1"))))
	if file.Different || file.RenderRef != "sha256:1" || p.count() != 1 {
		t.Errorf("a file that renders to what is applied: %+v", file)
	}
	for path, want := range map[string]string{"health": `"none" not found`, "diff": `"none" not found`, "history": `"none" not found`} {
		if a := raw(t, s, http.MethodGet, strings.Replace(releasePath, "shop", "none", 1)+path, ""); a.code != http.StatusNotFound || !strings.Contains(a.body, strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("%s of none: HTTP %d: %s", path, a.code, a.body)
		}
	}
	wrong := newRelease("team", "shop", "edge-1")
	wrong.Spec.Source.Kind = "Folder"
	if a := raw(t, s, http.MethodPost, releasePath+"diff", body(t, wrong)); a.code != http.StatusUnprocessableEntity || !strings.Contains(a.body, "spec.source.kind") {
		t.Errorf("a file that is wrong: HTTP %d: %s", a.code, a.body)
	}
}

func TestWithoutAnObserverNothingIsSaidOfWhatRuns(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	create(t, newClient(t, s), newRelease("team", "shop", "edge-1"))
	for _, question := range []string{"health", "diff", "history"} {
		if a := raw(t, s, http.MethodGet, releasePath+question, ""); a.code != http.StatusServiceUnavailable || !strings.Contains(a.body, "--observer-url") {
			t.Errorf("%s: HTTP %d: %s", question, a.code, a.body)
		}
	}
}

func TestADiffShowsNothingToWhoMayNotGetTheSecrets(t *testing.T) {
	t.Parallel()
	r := &rights{denied: map[string]bool{}}
	s, _ := withObserver(t, r)
	release := newRelease("team", "shop", "edge-1")
	release.Spec.Images.SecretRefs = []corev1alpha1.ImageSecretReference{{Name: "pull"}}
	create(t, newClient(t, s), release)
	r.deny("get secrets pull")
	for method, text := range map[string]string{http.MethodGet: "", http.MethodPost: body(t, newReleaseOf(release))} {
		if a := raw(t, s, method, releasePath+"diff", text); a.code != http.StatusForbidden || !strings.Contains(a.body, "cannot get Secret") {
			t.Errorf("%s: HTTP %d: %s", method, a.code, a.body)
		}
	}
	if a := raw(t, s, http.MethodGet, releasePath+"health", ""); a.code != http.StatusOK {
		t.Errorf("health shows no value: HTTP %d: %s", a.code, a.body)
	}
}

// newReleaseOf is what a file says of a Release.
func newReleaseOf(r *corev1alpha1.Release) *corev1alpha1.Release {
	out := newRelease(r.Namespace, r.Name, r.Spec.ClusterRef.Name)
	out.Spec.Images = r.Spec.Images
	return out
}
