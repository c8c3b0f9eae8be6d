// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestAnAnnotationOnAnObjectWhoseDeletionWaitsTakesItOutOfTheList(t *testing.T) {
	inModes(t, testAnAnnotationOnAnObjectWhoseDeletionWaitsTakesItOutOfTheList)
}

func testAnAnnotationOnAnObjectWhoseDeletionWaitsTakesItOutOfTheList(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("held-keep")
	strict := func(o *tunnel.Order) { o.Policy.Budget = &tunnel.DeletionBudget{Count: 2} }
	b.apply("held-keep", ns, many(ns, 0, 8), strict)
	fewer := many(ns, 0, 2)
	o := b.accept(b.order("held-keep", ns, fewer, strict))
	held := func(count int32) tunnel.HeldPrune {
		t.Helper()
		r := b.report("uid-held-keep", "held", func(r tunnel.Report) bool {
			return r.Sequence == o.Sequence && r.Settled && r.Held != nil && r.Held.Count == count && r.Applied.Reason == "PruneHeld"
		})
		if !strings.Contains(r.Applied.Message, strings.Join(r.Held.Objects, "; ")) {
			t.Errorf("applied is %+v, held %+v", r.Applied, r.Held)
		}
		return *r.Held
	}
	keep := func(name, value string) {
		b.edit(configmaps, ns, name, "somebody", `{"metadata":{"annotations":{"convoy.kumodo.io/prune":`+value+`}}}`)
	}
	all := held(6)
	keep("c-07", `"false"`)
	some := held(5)
	if all.Digest == some.Digest || strings.Contains(strings.Join(some.Objects, " "), "c-07") {
		t.Errorf("held is %+v, before it was %+v", some, all)
	}
	keep("c-07", "null")
	if again := held(6); again.Digest != all.Digest {
		t.Errorf("held is %+v, before it was %+v", again, all)
	}
	keep("c-07", `"false"`)
	held(5)
	// It holds too when nobody looked on.
	b.halt()
	keep("c-06", `"false"`)
	b.start()
	some = held(4)
	confirmed := func(digest string) option {
		return func(o *tunnel.Order) { o.Policy.Confirmed, o.Policy.ConfirmedUntil = digest, time.Now().Add(time.Hour) }
	}
	o = b.accept(b.order("held-keep", ns, fewer, strict, confirmed(all.Digest)))
	if held(4).Digest != some.Digest {
		t.Error("the list has changed")
	}
	b.apply("held-keep", ns, fewer, strict, confirmed(some.Digest))
	if n := b.count(ns); n != 2 {
		t.Errorf("%d objects are ours still", n)
	}
	b.gone(configmaps, ns, "c-05")
	for _, name := range []string{"c-06", "c-07"} {
		if got := b.get(configmaps, ns, name); got.GetDeletionTimestamp() != nil {
			t.Errorf("%s is being deleted", name)
		}
	}
}
