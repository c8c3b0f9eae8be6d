// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver"
	"kumodo.io/convoy/hub/apiserver/apiservertest"
)

const (
	lifecyclePath = corePath + "/namespaces/team/releases/shop/lifecycle"
	lifecycleKind = `{"apiVersion":"core.convoy.kumodo.io/v1alpha1","kind":"ReleaseLifecycle"`
	lifecycleHead = lifecycleKind + `,"metadata":{"name":"shop"}`
	oneHook       = `{"name":"migrate","phases":["PreSync"],"object":{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"migrate"}}}`
)

// asked is when requests are made: certificates are of that time, too.
var asked = time.Now().Add(-time.Minute).Truncate(time.Second).Add(6)

// withRuns makes Release shop, whose hooks have run.
func withRuns(t *testing.T, runs ...corev1alpha1.HookRun) *apiservertest.Server {
	t.Helper()
	s := apiservertest.Start(t, func(c *apiserver.Config) {
		c.Clock = clocktesting.NewFakePassiveClock(asked)
	})
	create(t, newClient(t, s), newRelease("team", "shop", "edge-1"))
	_, err := s.Storage().Releases.UpdateStatus(t.Context(), types.NamespacedName{Namespace: "team", Name: "shop"}, "", func(r *corev1alpha1.Release) error {
		r.Status.Hooks = runs
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func decoded[T any](t *testing.T, a answer) T {
	t.Helper()
	var out T
	if a.code != http.StatusOK && a.code != http.StatusCreated {
		t.Fatalf("HTTP %d: %s", a.code, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheHooksOfAReleaseAreReplacedByThemselves(t *testing.T) {
	t.Parallel()
	s := withRuns(t, corev1alpha1.HookRun{Hook: "migrate", Phase: corev1alpha1.HookPreSync, Run: "7-1", State: corev1alpha1.HookDone})
	got := decoded[corev1alpha1.ReleaseLifecycle](t, raw(t, s, http.MethodGet, lifecyclePath, ""))
	if len(got.Spec.Hooks) != 0 || len(got.Runs) != 1 || got.Runs[0].Run != "7-1" {
		t.Fatalf("got %+v", got)
	}

	put := lifecycleHead + `,"spec":{"hooks":[` + oneHook + `]}}`
	if a := raw(t, s, http.MethodPut, lifecyclePath+"?dryRun=All", put); a.code != http.StatusOK {
		t.Fatalf("dry run: HTTP %d: %s", a.code, a.body)
	}
	c := newClient(t, s)
	before := get(t, c, &corev1alpha1.Release{}, "team", "shop")
	if len(before.Spec.Lifecycle.Hooks) != 0 {
		t.Fatal("a dry run changed it")
	}
	got = decoded[corev1alpha1.ReleaseLifecycle](t, raw(t, s, http.MethodPut, lifecyclePath, put))
	after := get(t, c, &corev1alpha1.Release{}, "team", "shop")
	if len(after.Spec.Lifecycle.Hooks) != 1 || after.Generation != before.Generation+1 || got.ResourceVersion != after.ResourceVersion || len(got.Runs) != 1 {
		t.Errorf("got %+v, the Release has %+v", got, after.Spec.Lifecycle)
	}
	if diff := cmp.Diff(before.Spec.Source, after.Spec.Source); diff != "" {
		t.Errorf("it changed more (-want +got):\n%s", diff)
	}

	patch := `{"spec":{"hooks":[{"name":"migrate","phases":["PostSync"],"object":{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"migrate"}}}]}}`
	if a := raw(t, s, http.MethodPatch, lifecyclePath, patch, "Content-Type", "application/merge-patch+json"); a.code != http.StatusOK {
		t.Fatalf("patch: HTTP %d: %s", a.code, a.body)
	}
	if on := get(t, c, &corev1alpha1.Release{}, "team", "shop").Spec.Lifecycle.Hooks[0].Phases; on[0] != corev1alpha1.HookPostSync {
		t.Errorf("patched to %v", on)
	}
}

func TestWhatLifecycleRefuses(t *testing.T) {
	t.Parallel()
	s := withRuns(t,
		corev1alpha1.HookRun{Hook: "migrate", Phase: corev1alpha1.HookPreSync, Run: "8-1", State: corev1alpha1.HookRunning},
		corev1alpha1.HookRun{Hook: "migrate", Phase: corev1alpha1.HookPreSync, Run: "7-1", State: corev1alpha1.HookDone})
	request := func(run, action string) string {
		return lifecycleHead + `,"request":{"hook":"migrate","run":"` + run + `","action":"` + action + `"}}`
	}
	for name, test := range map[string]struct {
		method, path, body string
		code               int
		want               string
	}{
		"a run that nobody knows":         {http.MethodPost, lifecyclePath, request("9-1", "retry"), http.StatusUnprocessableEntity, "request.run: Not found"},
		"a run that is over":              {http.MethodPost, lifecyclePath, request("7-1", "abort"), http.StatusUnprocessableEntity, "the run is Succeeded"},
		"a retry of what runs":            {http.MethodPost, lifecyclePath, request("8-1", "retry"), http.StatusUnprocessableEntity, "the run is Running"},
		"an action that there is not":     {http.MethodPost, lifecyclePath, request("8-1", "stop"), http.StatusUnprocessableEntity, "request.action: Unsupported value"},
		"a request in a PUT":              {http.MethodPut, lifecyclePath, request("8-1", "skip"), http.StatusUnprocessableEntity, "request: Forbidden"},
		"a hook without a phase":          {http.MethodPut, lifecyclePath, lifecycleHead + `,"spec":{"hooks":[{"name":"a","phases":[],"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}}]}}`, http.StatusUnprocessableEntity, "spec.hooks[0].phases: Required"},
		"an old version":                  {http.MethodPut, lifecyclePath, lifecycleKind + `,"metadata":{"name":"shop","resourceVersion":"1"},"spec":{}}`, http.StatusConflict, "has been modified"},
		"another Release of that name":    {http.MethodPut, lifecyclePath, lifecycleKind + `,"metadata":{"name":"shop","uid":"other"},"spec":{}}`, http.StatusConflict, ""},
		"a Release that is not there":     {http.MethodPut, strings.Replace(lifecyclePath, "shop", "none", 1), lifecycleKind + `,"metadata":{"name":"none"},"spec":{}}`, http.StatusNotFound, "none"},
		"a request about one that is not": {http.MethodPost, strings.Replace(lifecyclePath, "shop", "none", 1), strings.Replace(request("8-1", "skip"), "shop", "none", 1), http.StatusNotFound, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			a := raw(t, s, test.method, test.path, test.body)
			if a.code != test.code || !strings.Contains(a.body, test.want) {
				t.Errorf("HTTP %d: %s", a.code, a.body)
			}
		})
	}
}

func TestWhatIsAskedOfARunIsLeftToTheControllers(t *testing.T) {
	t.Parallel()
	s := withRuns(t, corev1alpha1.HookRun{Hook: "Job/shop/migrate", Phase: corev1alpha1.HookPreSync, Run: "7-1", State: corev1alpha1.HookBroken})
	before := get(t, newClient(t, s), &corev1alpha1.Release{}, "team", "shop")
	got := decoded[corev1alpha1.ReleaseLifecycle](t, raw(t, s, http.MethodPost, lifecyclePath, lifecycleHead+`,"request":{"hook":"Job/shop/migrate","run":"7-1","action":"retry"}}`))
	if got.Request == nil || got.Request.Action != corev1alpha1.HookRetry {
		t.Errorf("got %+v", got)
	}
	after := get(t, newClient(t, s), &corev1alpha1.Release{}, "team", "shop")
	if want := "retry/" + asked.UTC().Format(time.RFC3339Nano) + "/7-1/Job/shop/migrate"; after.Annotations[corev1alpha1.AnnotationHookRequested] != want {
		t.Errorf("annotations %v", after.Annotations)
	}
	if after.Generation != before.Generation {
		t.Error("it counts as a change of the spec")
	}
}
