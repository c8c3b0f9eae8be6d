// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// asked answers with one body and remembers what was asked.
type asked struct {
	mu     sync.Mutex
	paths  []string
	bodies []corev1alpha1.ReleaseLifecycle
	body   any
}

func (a *asked) answer(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.paths = append(a.paths, r.Method+" "+r.URL.RequestURI())
	if strings.Contains(r.URL.Path, "/none/") {
		fail(w, apierrors.NewNotFound(corev1alpha1.Resource("releases"), "none"))
		return
	}
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/lifecycle") {
		a.bodies = append(a.bodies, decodeBody[corev1alpha1.ReleaseLifecycle](r))
	}
	write(w, http.StatusOK, a.body)
}

func answering(t *testing.T, body any) (*fakeHub, *asked) {
	t.Helper()
	hub, a := newFakeHub(t), &asked{body: body}
	hub.answerAll(a.answer)
	return hub, a
}

var (
	ofShop  = metav1.ObjectMeta{Name: "shop", Namespace: "team-a"}
	live    = corev1alpha1.Observation{Live: true, Sequence: 7, At: ago(0)}
	notLive = corev1alpha1.Observation{Sequence: 7, At: ago(3 * time.Hour), Message: "Cluster edge is not connected"}
)

func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: time.Now().Add(-d)} }

func TestHealthShowsEachObjectAndWhetherThatIsLive(t *testing.T) {
	t.Parallel()
	list := []corev1alpha1.ObjectHealth{
		{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", State: "Degraded", Message: "no\x1b[2Jpods", Since: ago(2 * time.Minute), InSync: "False", Reason: "Drifted"},
		{Kind: "Service", Namespace: "shop", Name: "web", State: "Healthy", InSync: "True"},
	}
	table := `OBJECT                        STATE      IN SYNC         SINCE   MESSAGE
deployment.apps/web -n shop   Degraded   False Drifted   2m      no [2Jpods
service/web -n shop           Healthy    True                    
`
	for name, test := range map[string]struct {
		observed corev1alpha1.Observation
		beside   string
	}{
		"live":                    {live, "release/shop live, order 7\nand 3 more objects, none of them worse\n"},
		"as it was":               {notLive, "release/shop NOT LIVE: Cluster edge is not connected; as it was known 3h ago, order 7\nand 3 more objects, none of them worse\n"},
		"nothing is known of any": {corev1alpha1.Observation{Message: "there is no Cluster edge"}, "release/shop NOT LIVE: there is no Cluster edge; nothing is known from before\nand 3 more objects, none of them worse\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub, a := answering(t, corev1alpha1.ReleaseHealth{TypeMeta: ofKind("ReleaseHealth"), ObjectMeta: ofShop, Observation: test.observed, Objects: list, MoreObjects: 3})
			out, beside, err := hub.run(t, "health", "shop")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(table, out); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.beside, beside); diff != "" {
				t.Errorf("beside it (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"GET " + group + "/releases/shop/health"}, a.paths); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

func raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

func TestDiffEndsAsKubectlDiffDoes(t *testing.T) {
	t.Parallel()
	const secret = `{"apiVersion":"v1","data":{"a":"<sealed:`
	seal := func(digit string) string {
		return secret + strings.Repeat(digit, 64) + `>"},"kind":"Secret","metadata":{"name":"s"}}`
	}
	web := corev1alpha1.ObjectDrift{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", InSync: "False", Reason: "Drifted", Fields: []corev1alpha1.FieldDifference{
		{Path: "spec.replicas", Wanted: "2", Live: "5", Manager: "kubectl-scale"}, {Path: "metadata.labels.x", Live: `"y"`},
	}, MoreFields: 1}
	lost := corev1alpha1.ObjectDrift{Kind: "ConfigMap", Name: "a", InSync: "Unknown", Reason: "Unreachable", Problem: "no answer"}
	tests := map[string]struct {
		answer corev1alpha1.ReleaseDiff
		code   int
		out    string
	}{
		"nothing differs":                   {corev1alpha1.ReleaseDiff{Observation: live}, 0, ""},
		"nothing is known to, and not live": {corev1alpha1.ReleaseDiff{Observation: notLive}, exitFailed, ""},
		"one cannot be compared":            {corev1alpha1.ReleaseDiff{Observation: live, Drift: []corev1alpha1.ObjectDrift{lost}}, exitFailed, "# from what runs to what was applied\n--- configmap/a\n+++ configmap/a\n# not compared: no answer\n"},
		"an object was changed": {corev1alpha1.ReleaseDiff{Observation: live, Different: true, Drift: []corev1alpha1.ObjectDrift{web}}, exitDifferent, `# from what runs to what was applied
--- deployment.apps/web -n shop
+++ deployment.apps/web -n shop
@@ spec.replicas by kubectl-scale @@
-5
+2
@@ metadata.labels.x @@
-"y"
# and 1 more fields
`},
		"a render waits, with a Secret": {corev1alpha1.ReleaseDiff{Observation: notLive, Different: true, AppliedRef: "sha256:1", RenderRef: "sha256:2", Pending: []corev1alpha1.ObjectChange{
			{Change: corev1alpha1.ChangeChanged, Applied: raw(seal("1")), Wanted: raw(seal("2"))},
			{Change: corev1alpha1.ChangeRemoved, Applied: raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"old"}}`)},
		}}, exitDifferent, `# from what was applied (sha256:1) to the render sha256:2
--- secret/s
+++ secret/s
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  a: <sealed:1>
+  a: <sealed:2>
 kind: Secret
 metadata:
   name: s
--- configmap/old
+++ /dev/null
@@ -1,4 +0,0 @@
-apiVersion: v1
-kind: ConfigMap
-metadata:
-  name: old
`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.answer.TypeMeta, test.answer.ObjectMeta = ofKind("ReleaseDiff"), ofShop
			hub, _ := answering(t, test.answer)
			out, _, err := hub.run(t, "diff", "shop")
			if code := exit(err, &bytes.Buffer{}); code != test.code {
				t.Errorf("exit code %d: %v", code, err)
			}
			if diff := cmp.Diff(test.out, out); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDiffOfAFileAsksForItsRender(t *testing.T) {
	t.Parallel()
	hub, a := answering(t, corev1alpha1.ReleaseDiff{TypeMeta: ofKind("ReleaseDiff"), ObjectMeta: ofShop})
	if out, beside, err := hub.run(t, "diff", "-f", file(t, shopFile)); err != nil || out+beside != "" {
		t.Errorf("%v, %s%s", err, out, beside)
	}
	if diff := cmp.Diff([]string{"POST " + group + "/releases/shop/diff?fieldValidation=Strict"}, a.paths); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestHistoryShowsWhatIsLeft(t *testing.T) {
	t.Parallel()
	hub, _ := answering(t, corev1alpha1.ReleaseHistory{TypeMeta: ofKind("ReleaseHistory"), ObjectMeta: ofShop, Entries: []corev1alpha1.HistoryDetail{
		{HistoryEntry: corev1alpha1.HistoryEntry{RenderRef: "sha256:0123456789abcdef", SourceRevision: "main@sha1:34", Sequence: 9, AppliedAt: ago(time.Hour), Healthy: true}, Current: true, Applied: true, Stored: true, Count: 12},
		{HistoryEntry: corev1alpha1.HistoryEntry{RenderRef: "sha256:1", Sequence: 7, AppliedAt: ago(50 * time.Hour)}},
	}})
	out, _, err := hub.run(t, "history", "shop")
	if err != nil {
		t.Fatal(err)
	}
	want := `RENDER                REVISION       ORDER   APPLIED   HEALTHY   OBJECTS   NOTE
sha256:0123456789ab   main@sha1:34   9       60m       true      12        current, applied
sha256:1                             7       2d2h      false               not stored
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// hooked are two hooks, of which one has run, and failed.
func hooked() corev1alpha1.ReleaseLifecycle {
	hook := func(name string, phases ...corev1alpha1.HookPhase) corev1alpha1.Hook {
		return corev1alpha1.Hook{Name: name, Phases: phases, Object: *raw(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`)}
	}
	return corev1alpha1.ReleaseLifecycle{
		TypeMeta: ofKind("ReleaseLifecycle"), ObjectMeta: ofShop,
		Spec: corev1alpha1.Lifecycle{Hooks: []corev1alpha1.Hook{hook("migrate", corev1alpha1.HookPreSync, corev1alpha1.HookPreDelete)}},
		Runs: []corev1alpha1.HookRun{
			{Hook: "migrate", Phase: corev1alpha1.HookPreSync, Run: "9-1", State: corev1alpha1.HookBroken, StartedAt: ago(time.Minute), Message: "exit code 1"},
			{Hook: "Job/shop/prepare", Phase: corev1alpha1.HookPreSync, Run: "9-1", State: corev1alpha1.HookDone, StartedAt: ago(2 * time.Hour)},
		},
	}
}

func TestLifecycleShowsHooksAndTheirRuns(t *testing.T) {
	t.Parallel()
	hub, _ := answering(t, hooked())
	out, _, err := hub.run(t, "lifecycle", "shop")
	if err != nil {
		t.Fatal(err)
	}
	want := `HOOK               PHASE       STATE       RUN   AGE    MESSAGE
migrate            PreSync     Failed      9-1   60s    exit code 1
Job/shop/prepare   PreSync     Succeeded   9-1   120m   
migrate            PreDelete   -                        
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out, _, err = hub.run(t, "lifecycle", "shop", "-o", "yaml")
	if err != nil || !strings.Contains(out, "hook: Job/shop/prepare") || !strings.Contains(out, "kind: ReleaseLifecycle") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestLifecycleActsOnARunOfAHook(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want corev1alpha1.HookRequest
	}{
		"the newest run": {[]string{"retry", "migrate"}, corev1alpha1.HookRequest{Hook: "migrate", Run: "9-1", Action: corev1alpha1.HookRetry}},
		"another run":    {[]string{"skip", "Job/shop/prepare", "--run", "8-2"}, corev1alpha1.HookRequest{Hook: "Job/shop/prepare", Run: "8-2", Action: corev1alpha1.HookSkip}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub, a := answering(t, hooked())
			out, _, err := hub.run(t, append([]string{"lifecycle", "shop"}, test.args...)...)
			if err != nil || !strings.Contains(out, "run "+test.want.Run+", requested") {
				t.Fatalf("%v: %s", err, out)
			}
			if len(a.bodies) != 1 || *a.bodies[0].Request != test.want {
				t.Errorf("asked %+v", a.bodies)
			}
		})
	}
}

func TestWhatIsAskedWronglySaysSo(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want error
	}{
		"an output that there is not": {[]string{"health", "shop", "-o", "names"}, errAnswerForm},
		"a Release that is not there": {[]string{"history", "none"}, errNoRelease},
		"a diff of nothing":           {[]string{"diff"}, errNothingToCompare},
		"a diff of none":              {[]string{"diff", "none"}, errNoRelease},
		"an action that there is not": {[]string{"lifecycle", "shop", "stop", "migrate"}, errAction},
		"an action on nothing":        {[]string{"lifecycle", "shop", "retry"}, errAction},
		"a hook that has not run":     {[]string{"lifecycle", "shop", "retry", "other"}, errNoRun},
		"a run without an action":     {[]string{"lifecycle", "shop", "--run", "9-1"}, errRunAlone},
		"an output of an action":      {[]string{"lifecycle", "shop", "retry", "migrate", "-o", "json"}, errOutputToo},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub, _ := answering(t, hooked())
			if _, _, err := hub.run(t, test.args...); !errors.Is(err, test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
