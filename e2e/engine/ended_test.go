// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kumodo.io/convoy/pkg/tunnel"
)

// expiring makes a Job of the test one that the cluster removes at once when it has ended.
func expiring(job string) string {
	return strings.Replace(job, "spec:\n", "spec:\n  ttlSecondsAfterFinished: 0\n", 1)
}

// stopped makes a Job one that does not begin before somebody says so.
func stopped(job string) string {
	return strings.Replace(job, "spec:\n", "spec:\n  suspend: true\n", 1)
}

// applies counts how often the engine applies an object, dry runs left out.
func (b *bench) applies(plural, name string) *atomic.Int64 {
	var n atomic.Int64
	count := func(_ int64, req *http.Request) error {
		if req.Method == http.MethodPatch && req.URL.Query().Get("dryRun") == "" && strings.HasSuffix(req.URL.Path, "/"+plural+"/"+name) {
			n.Add(1)
		}
		return nil
	}
	b.calls.before.Store(&count)
	return &n
}

// taken has somebody else delete an object at once, and waits until it is gone.
func (b *bench) taken(gvr schema.GroupVersionResource, namespace, name string) {
	b.t.Helper()
	now := int64(0)
	err := b.plane.Dynamic().Resource(gvr).Namespace(namespace).Delete(b.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil && !apierrors.IsNotFound(err) {
		b.t.Fatal(err)
	}
	b.gone(gvr, namespace, name)
}

// repaired has somebody delete a ConfigMap of a Release, and waits until it is made again:
// whatever else there was to repair before was looked at by then.
func (b *bench) repaired(ns, name string) {
	b.t.Helper()
	old := b.get(configmaps, ns, name).GetUID()
	if err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Delete(b.ctx, name, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
	b.live(configmaps, ns, name, "made again", func(u *unstructured.Unstructured) bool { return u.GetUID() != old })
}

func TestDR14AJobThatTheClusterRemovesAfterItsEndIsDoneAndRunsOnceForEachRender(t *testing.T) {
	inModes(t, testDR14AJobThatTheClusterRemovesAfterItsEndIsDoneAndRunsOnceForEachRender)
}

func testDR14AJobThatTheClusterRemovesAfterItsEndIsDoneAndRunsOnceForEachRender(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("dr14")
	runs := b.applies("jobs", "once")
	render := func(image, value string) string {
		return expiring(strings.Replace(job("once", "namespace: "+ns), "example/job:1", image, 1)) + configMap(ns, "cm", "k", value)
	}
	patient := func(o *tunnel.Order) { o.Policy.TimeoutSeconds = 120 }
	all := func(what string, r tunnel.Report) {
		t.Helper()
		if r.Counts.Total != 2 || r.Counts.Applied != 2 || r.Counts.Healthy != 2 || r.Counts.Drifted != 0 || len(r.Exceptions) != 0 {
			t.Errorf("%s: %+v, exceptions %+v", what, r.Counts, r.Exceptions)
		}
	}
	ran := func(what string, want int64) {
		t.Helper()
		b.gone(jobs, ns, "once")
		b.repaired(ns, "cm")
		if n := runs.Load(); n != want {
			t.Errorf("%s: the Job was applied %d times, want %d", what, n, want)
		}
	}
	o, _ := b.apply("dr14", ns, render("example/job:1", "v1"), patient)
	ran("after it had ended", 1)
	all("removed", b.applied(o))
	detail, _, err := b.detail("uid-dr14", tunnel.LiveHealth)
	if err != nil {
		t.Fatal(err)
	}
	told := slices.IndexFunc(detail, func(l tunnel.LiveObject) bool {
		return l.Kind == "Job" && l.State == "Healthy" && l.InSync == tunnel.True && strings.Contains(l.Message, "has ended, and was removed since")
	})
	if told < 0 {
		t.Errorf("of the Job is not told that it is done with: %+v", detail)
	}
	b.restartInMode()
	ran("after a restart", 1)
	all("after a restart", b.applied(o))
	// Another revision, in which the Job is the same, and other terms.
	_, r := b.apply("dr14", ns, render("example/job:1", "v2"), patient)
	all("with another render", r)
	ran("with another render", 1)
	o, r = b.apply("dr14", ns, render("example/job:2", "v2"), patient)
	all("when it has changed", r)
	ran("when it has changed", 2)
	if len(b.inventory("uid-dr14")) != 2 {
		t.Errorf("the inventory is %+v", b.inventory("uid-dr14"))
	}
	b.applied(o)
	b.apply("dr14", ns, render("example/job:2", "v2"), patient, forceAgain)
	ran("when a sync is forced", 3)
	// What is gone costs a prune and a removal nothing.
	b.apply("dr14", ns, configMap(ns, "cm", "k", "v3"), func(o *tunnel.Order) { o.Policy.Budget = &tunnel.DeletionBudget{} })
	b.apply("dr14", ns, render("example/job:3", "v3"), patient)
	ran("when it is back", 4)
	b.accept(b.bare("dr14", tunnel.VerbRemove))
	b.acknowledged(b.report("uid-dr14", "removed", func(r tunnel.Report) bool { return r.Done && r.Settled }))
}

func TestDR14AJobThatEndedWhileNobodyLookedIsDoneAndOneThatDidNotIsMadeAgain(t *testing.T) {
	inModes(t, testDR14AJobThatEndedWhileNobodyLookedIsDoneAndOneThatDidNotIsMadeAgain)
}

func testDR14AJobThatEndedWhileNobodyLookedIsDoneAndOneThatDidNotIsMadeAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("dr14-away")
	documents := ""
	for _, name := range []string{"ends", "removed"} {
		documents += stopped(expiring(job(name, "namespace: "+ns)))
	}
	o := b.accept(b.order("dr14-away", ns, documents))
	settled := func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Settled && r.Applied.Status == tunnel.True && r.InSync.Status == tunnel.True
	}
	b.report("uid-dr14-away", "applied", settled)
	first := b.get(jobs, ns, "removed").GetUID()
	b.halt()
	b.edit(jobs, ns, "ends", "somebody", `{"spec":{"suspend":false}}`)
	b.taken(jobs, ns, "removed")
	b.gone(jobs, ns, "ends")
	runs := b.applies("jobs", "ends")
	b.start()
	b.live(jobs, ns, "removed", "made again", func(u *unstructured.Unstructured) bool { return u.GetUID() != first })
	r := b.report("uid-dr14-away", "one done and one paused", func(r tunnel.Report) bool {
		return settled(r) && r.Healthy.Reason == "Suspended" && r.Counts.Healthy == 1
	})
	if r.Counts.Applied != 2 || runs.Load() != 0 {
		t.Errorf("%+v, and the Job that had ended was applied %d times", r.Counts, runs.Load())
	}
	// Removed by somebody before its end while the engine looks on.
	second := b.get(jobs, ns, "removed").GetUID()
	b.taken(jobs, ns, "removed")
	b.live(jobs, ns, "removed", "made again", func(u *unstructured.Unstructured) bool { return u.GetUID() != second })
}

func TestDR14AJobThatEndedBeforeTheEngineWasKilledInTheMiddleOfASyncIsNotRunAgain(t *testing.T) {
	inModes(t, testDR14AJobThatEndedBeforeTheEngineWasKilledInTheMiddleOfASyncIsNotRunAgain)
}

func testDR14AJobThatEndedBeforeTheEngineWasKilledInTheMiddleOfASyncIsNotRunAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("dr14-killed")
	runs := b.applies("jobs", "ends")
	o := b.accept(b.order("dr14-killed", ns, expiring(job("ends", "namespace: "+ns))+
		idle("waits", "namespace: "+ns+`, annotations: {convoy.kumodo.io/sync-wave: "1"}`)+
		strings.Replace(configMap(ns, "last", "k", "v"), "name: last,", `name: last, annotations: {convoy.kumodo.io/sync-wave: "2"},`, 1), seconds(600)))
	waits := func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Operation != nil && strings.Contains(r.Operation.Message, "waiting for batch/Job "+ns+"/waits")
	}
	b.report("uid-dr14-killed", "that it waits", waits)
	b.gone(jobs, ns, "ends")
	b.restartInMode()
	b.report("uid-dr14-killed", "that it waits again", waits)
	if n := runs.Load(); n != 1 {
		t.Errorf("the Job was applied %d times", n)
	}
	b.endJob(ns, "waits", true)
	if r := b.applied(o); r.Counts.Healthy != 3 || r.Counts.Applied != 3 {
		t.Errorf("%+v", r.Counts)
	}
}

func TestDR14AJobThatFailedAndWasRemovedIsToldAndNotRunForEver(t *testing.T) {
	inModes(t, testDR14AJobThatFailedAndWasRemovedIsToldAndNotRunForEver)
}

func testDR14AJobThatFailedAndWasRemovedIsToldAndNotRunForEver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("dr14-failed")
	documents := expiring(idle("fails", "namespace: "+ns)) + configMap(ns, "cm", "k", "v")
	runs := b.applies("jobs", "fails")
	o := b.accept(b.order("dr14-failed", ns, documents, seconds(600)))
	b.live(jobs, ns, "fails", "made", func(*unstructured.Unstructured) bool { return true })
	b.endJob(ns, "fails", false)
	b.gone(jobs, ns, "fails")
	b.report("uid-dr14-failed", "that it failed", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Healthy.Reason == "Degraded" && strings.Contains(r.Healthy.Message, "has failed, and was removed since")
	})
	b.repaired(ns, "cm")
	if n := runs.Load(); n != 1 {
		t.Errorf("the Job was applied %d times", n)
	}
}

func TestWhatIsThereToEndMayGoWhenItHas(t *testing.T) { inModes(t, testWhatIsThereToEndMayGoWhenItHas) }

func testWhatIsThereToEndMayGoWhenItHas(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("to-end")
	documents := `
apiVersion: v1
kind: Pod
metadata: {name: run}
spec: {restartPolicy: Never, nodeSelector: {nowhere: "true"}, containers: [{name: c, image: "example/run:1"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: annotated, annotations: {convoy.kumodo.io/once: "true"}}
data: {k: v}
---
` + configMap(ns, "cm", "k", "v")
	o := b.accept(b.order("to-end", ns, documents))
	b.live(pods, ns, "run", "made", func(*unstructured.Unstructured) bool { return true })
	if _, err := b.plane.Dynamic().Resource(pods).Namespace(ns).Patch(b.ctx, "run", mergePatch, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	b.applied(o)
	runs := b.applies("pods", "run")
	b.taken(pods, ns, "run")
	b.taken(configmaps, ns, "annotated")
	b.repaired(ns, "cm")
	r := b.report("uid-to-end", "all well", func(r tunnel.Report) bool {
		return r.Settled && r.Healthy.Status == tunnel.True && r.InSync.Status == tunnel.True
	})
	if r.Counts.Healthy != 3 || r.Counts.Applied != 3 || runs.Load() != 0 {
		t.Errorf("%+v, and the Pod was applied %d times", r.Counts, runs.Load())
	}
	if _, err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Get(b.ctx, "annotated", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the annotated object is there again: %v", err)
	}
	// Orphaned it would be for ever: there is nothing to prune.
	_, r = b.apply("to-end", ns, configMap(ns, "cm", "k", "v"), func(o *tunnel.Order) { o.Policy.PruneOrphaned = false })
	if r.Counts.Orphaned != 0 || len(b.inventory("uid-to-end")) != 1 {
		t.Errorf("%+v, inventory %+v", r.Counts, b.inventory("uid-to-end"))
	}
}
