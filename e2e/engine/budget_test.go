// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/pkg/tunnel"
)

// restartInMode starts an engine anew with what it has kept, in any mode.
func (b *bench) restartInMode() {
	b.t.Helper()
	b.halt()
	b.mu.Lock()
	b.latest = map[string]tunnel.Report{}
	b.mu.Unlock()
	b.start()
}

// many are ConfigMaps with numbers for names.
func many(ns string, from, to int) string {
	var out strings.Builder
	for i := from; i < to; i++ {
		out.WriteString(configMap(ns, fmt.Sprintf("c-%02d", i), "k", "v"))
	}
	return out.String()
}

// count says how many ConfigMaps of ours a namespace has.
func (b *bench) count(ns string) int {
	b.t.Helper()
	list, err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).List(b.ctx, metav1.ListOptions{LabelSelector: "convoy.kumodo.io/managed"})
	if err != nil {
		b.t.Fatal(err)
	}
	return len(list.Items)
}

func TestDeletionsAboveTheBudgetWaitUntilExactlyTheyAreConfirmed(t *testing.T) {
	inModes(t, testDeletionsAboveTheBudgetWaitUntilExactlyTheyAreConfirmed)
}

func testDeletionsAboveTheBudgetWaitUntilExactlyTheyAreConfirmed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("budget")
	strict := func(o *tunnel.Order) { o.Policy.Budget = &tunnel.DeletionBudget{Count: 2, Percent: 20} }
	b.apply("budget", ns, many(ns, 0, 12), strict)
	fewer := many(ns, 0, 4) + configMap(ns, "fresh", "k", "v")
	o := b.accept(b.order("budget", ns, fewer, strict))
	isHeld := func(o tunnel.Order) func(tunnel.Report) bool {
		return func(r tunnel.Report) bool {
			return r.Sequence == o.Sequence && r.Settled && r.Applied.Reason == "PruneHeld" && r.Held != nil
		}
	}
	r := b.report("uid-budget", "held", isHeld(o))
	if r.Applied.Status != tunnel.False || r.Held.Count != 8 || r.Held.Total != 12 || r.Held.Sequence != o.Sequence || len(r.Held.Objects) != 8 ||
		!strings.Contains(r.Applied.Message, "8 of 12") || !strings.Contains(r.Applied.Message, "--confirm-deletions") || !strings.Contains(r.Applied.Message, "ConfigMap "+ns+"/c-04") {
		t.Errorf("applied is %+v, held %+v", r.Applied, r.Held)
	}
	addsUp := func(r tunnel.Report) {
		t.Helper()
		// SS-24: what waits to be deleted is no part of what the render has.
		if c := r.Counts; c.Total != 5 || c.Applied > c.Total || c.Healthy+c.Drifted+c.Failed > c.Total {
			t.Errorf("the counts do not add up: %+v", c)
		}
	}
	addsUp(r)
	b.get(configmaps, ns, "fresh")
	if n := b.count(ns); n != 13 {
		t.Errorf("%d objects are left", n)
	}
	// What waits goes on being enforced, over a restart too, and is told alike.
	b.restartInMode()
	again := b.report("uid-budget", "held after a restart", isHeld(o))
	addsUp(again)
	if again.Held.Digest != r.Held.Digest {
		t.Errorf("held after a restart is %+v", again.Held)
	}
	b.edit(configmaps, ns, "c-11", "somebody", `{"data":{"k":"edited"}}`)
	b.live(configmaps, ns, "c-11", "healed while it waits", healedTo("v"))

	confirmed := func(digest string, until time.Time) option {
		return func(o *tunnel.Order) { o.Policy.Confirmed, o.Policy.ConfirmedUntil = digest, until }
	}
	wrong := b.accept(b.order("budget", ns, fewer, strict, confirmed("sha256:"+strings.Repeat("0", 64), time.Now().Add(time.Hour))))
	b.report("uid-budget", "held, since something else was confirmed", isHeld(wrong))
	late := b.accept(b.order("budget", ns, fewer, strict, confirmed(r.Held.Digest, time.Now().Add(-time.Minute))))
	b.report("uid-budget", "held, since the confirmation has expired", isHeld(late))
	if n := b.count(ns); n != 13 {
		t.Errorf("%d objects are left", n)
	}
	right := b.accept(b.order("budget", ns, fewer, strict, confirmed(r.Held.Digest, time.Now().Add(time.Hour))))
	if done := b.applied(right); done.Held != nil {
		t.Errorf("held is still %+v", done.Held)
	}
	if n := b.count(ns); n != 5 {
		t.Errorf("%d objects are left", n)
	}
}

func TestARenderThatHasTheObjectsAgainEndsTheWait(t *testing.T) {
	inModes(t, testARenderThatHasTheObjectsAgainEndsTheWait)
}

func testARenderThatHasTheObjectsAgainEndsTheWait(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("budget-back")
	b.apply("back", ns, many(ns, 0, 30))
	o := b.accept(b.order("back", ns, many(ns, 0, 1)))
	b.report("uid-back", "held by the budget of an order that names none", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Held != nil && r.Held.Count == 29
	})
	_, r := b.apply("back", ns, many(ns, 0, 30))
	if r.Held != nil || b.count(ns) != 30 {
		t.Errorf("held %+v, %d objects are left", r.Held, b.count(ns))
	}
}

func TestPR08AFinalizerThatOutlastsTheDeadlineIsNamedAndDatedAndTheRestFollowsItsLift(t *testing.T) {
	inModes(t, testPR08AFinalizerThatOutlastsTheDeadlineIsNamedAndDatedAndTheRestFollowsItsLift)
}

func testPR08AFinalizerThatOutlastsTheDeadlineIsNamedAndDatedAndTheRestFollowsItsLift(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("stuck")
	soon := func(o *tunnel.Order) { o.Policy.TimeoutSeconds = 2 }
	b.apply("stuck", ns, configMap(ns, "stays", "k", "v")+`
apiVersion: v1
kind: ConfigMap
metadata:
  name: held
  annotations: {convoy.kumodo.io/sync-wave: "1"}
  finalizers: [stuck.example.test/hold]
data: {k: v}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: below, annotations: {convoy.kumodo.io/sync-wave: "0"}}
data: {k: v}
---
`)
	asked := b.calls.n.Load()
	before := time.Now().Add(-2 * time.Second) // the server counts whole seconds
	o := b.accept(b.order("stuck", ns, configMap(ns, "stays", "k", "v"), soon))
	r := b.report("uid-stuck", "the deadline has passed", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Applied.Reason == "PruneFailed" && r.Settled
	})
	if !strings.Contains(r.Applied.Message, "ConfigMap "+ns+"/held") || !strings.Contains(r.Applied.Message, "stuck.example.test/hold") {
		t.Errorf("applied is %+v", r.Applied)
	}
	found := false
	for _, e := range r.Exceptions {
		if e.Name == "held" {
			found = true
			if e.Reason != "Terminating" || !strings.Contains(e.Message, "stuck.example.test/hold") || e.Since.Before(before) || e.Since.After(time.Now().Add(time.Second)) {
				t.Errorf("exception %+v", e)
			}
		}
	}
	if !found {
		t.Errorf("exceptions are %+v", r.Exceptions)
	}
	// Over a restart too.
	b.restartInMode()
	b.report("uid-stuck", "told again after a restart", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && len(r.Exceptions) > 0 && r.Exceptions[0].Reason == "Terminating"
	})
	b.get(configmaps, ns, "below")
	deletes := 0
	for _, call := range b.calls.since(asked) {
		if strings.HasPrefix(call, http.MethodDelete) && strings.HasSuffix(call, "/held") {
			deletes++
		}
	}
	if deletes != 1 {
		t.Errorf("its deletion was asked for %d times", deletes)
	}
	b.edit(configmaps, ns, "held", "owner", `{"metadata":{"finalizers":null}}`)
	b.applied(o)
	b.gone(configmaps, ns, "held")
	b.gone(configmaps, ns, "below")
	b.get(configmaps, ns, "stays")
	for _, call := range b.calls.since(asked) {
		if strings.HasPrefix(call, http.MethodPatch) && !strings.Contains(call, "dryRun") && (strings.Contains(call, "/held?") || strings.Contains(call, "/below?")) {
			t.Errorf("what was on its way out was applied again: %s", call)
		}
	}
}

func TestPR08ANamespaceThatSomebodyDeletedFirstIsProgressOfThePruneAndNoFailure(t *testing.T) {
	inModes(t, testPR08ANamespaceThatSomebodyDeletedFirstIsProgressOfThePruneAndNoFailure)
}

func testPR08ANamespaceThatSomebodyDeletedFirstIsProgressOfThePruneAndNoFailure(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("calm")
	manual := func(o *tunnel.Order) { o.Policy.Automatic = false }
	b.apply("calm", ns, "apiVersion: v1\nkind: Namespace\nmetadata: {name: calm-a}\n---\n"+configMap("calm-a", "first", "k", "v")+`
apiVersion: v1
kind: ConfigMap
metadata: {name: middle, namespace: calm-a, finalizers: [calm.example.test/hold]}
data: {k: v}
`, manual)
	if err := b.plane.Dynamic().Resource(namespaces).Delete(b.ctx, "calm-a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.gone(configmaps, "calm-a", "first")
	o := b.accept(b.order("calm", ns, configMap(ns, "fresh", "k", "v"), manual))
	r := b.report("uid-calm", "waits for what is being deleted", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && strings.Contains(r.Applied.Message, "calm.example.test/hold")
	})
	if r.Applied.Status == tunnel.False {
		t.Errorf("a failure is told: %+v", r.Applied)
	}
	b.edit(configmaps, "calm-a", "middle", "owner", `{"metadata":{"finalizers":null}}`)
	b.applied(o)
	b.gone(namespaces, "", "calm-a")
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.all {
		if r.Sequence == o.Sequence && r.Applied.Status == tunnel.False {
			t.Errorf("a failure was told on the way: %+v", r.Applied)
		}
	}
}

func TestPR08TheLiftOfAFinalizerIsFollowedAlsoWhenTheOrderAllowsNoRetry(t *testing.T) {
	inModes(t, testPR08TheLiftOfAFinalizerIsFollowedAlsoWhenTheOrderAllowsNoRetry)
}

func testPR08TheLiftOfAFinalizerIsFollowedAlsoWhenTheOrderAllowsNoRetry(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("lift")
	once := func(o *tunnel.Order) {
		o.Policy.TimeoutSeconds, o.Policy.Retry = 1, &tunnel.Retry{Limit: 0, MinSeconds: 1, MaxSeconds: 1}
	}
	b.apply("lift", ns, configMap(ns, "stays", "k", "v")+`
apiVersion: v1
kind: ConfigMap
metadata: {name: held, annotations: {convoy.kumodo.io/sync-wave: "1"}, finalizers: [lift.example.test/hold]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: below, annotations: {convoy.kumodo.io/sync-wave: "0"}}
---
`)
	o := b.accept(b.order("lift", ns, configMap(ns, "stays", "k", "v"), once))
	b.report("uid-lift", "gave up", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Applied.Reason == "RetriesExhausted" && strings.Contains(r.Applied.Message, "lift.example.test/hold")
	})
	b.get(configmaps, ns, "below")
	b.edit(configmaps, ns, "held", "owner", `{"metadata":{"finalizers":null}}`)
	b.applied(o)
	b.gone(configmaps, ns, "below")
}
