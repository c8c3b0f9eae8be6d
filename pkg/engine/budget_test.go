// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"testing"
	"time"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestTheHigherOfCountAndShareIsTheBudget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		budget *tunnel.DeletionBudget
		total  int
		want   int
	}{
		"nothing said, few objects":  {nil, 10, 20},
		"nothing said, many objects": {nil, 1000, 500},
		"none may go":                {&tunnel.DeletionBudget{}, 1000, 0},
		"the count is more":          {&tunnel.DeletionBudget{Count: 100, Percent: 10}, 500, 100},
		"the share is more":          {&tunnel.DeletionBudget{Count: 1, Percent: 10}, 500, 50},
		"all may go":                 {&tunnel.DeletionBudget{Percent: 100}, 7, 7},
	} {
		if got := limitOf(c.budget, c.total); got != c.want {
			t.Errorf("%s: %d of %d, want %d", name, got, c.total, c.want)
		}
	}
}

func TestOnlyExactlyTheConfirmedListIsLetThroughAndOnlyInTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rn, _ := unstarted(t, now)
	r := rn.newRelease("r")
	var stale []*object
	for i := range 30 {
		id := manifest.Identity{Kind: "ConfigMap", Namespace: "ns", Name: fmt.Sprintf("c-%02d", i)}
		o := &object{id: id, uid: fmt.Sprint(i), applied: true, seen: true}
		r.objects[id] = o
		stale = append(stale, o)
	}
	claim := &object{id: manifest.Identity{Kind: kindClaim, Namespace: "ns", Name: "data"}, uid: "claim", applied: true, seen: true}
	never := &object{id: manifest.Identity{Kind: "ConfigMap", Namespace: "ns", Name: "never"}}
	stale = append(stale, claim, never)
	order := tunnel.Order{Verb: tunnel.VerbApply, Sequence: 7}
	ask := func(stale []*object) *tunnel.HeldPrune {
		t.Helper()
		held, err := r.withinBudget(t.Context(), order, stale, rulesOf(order, false))
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	held := ask(stale)
	if held == nil || held.Count != 30 || held.Total != 32 || len(held.Objects) != maxHeldObjects || held.Objects[0] != "ConfigMap ns/c-00" || held.Sequence != 7 {
		t.Fatalf("held is %+v", held)
	}
	order.Policy.Confirmed, order.Policy.ConfirmedUntil = held.Digest, now.Add(time.Minute)
	if got := ask(stale); got != nil {
		t.Errorf("confirmed, and held all the same: %+v", got)
	}
	order.Policy.ConfirmedUntil = now
	if got := ask(stale); got == nil || got.Digest != held.Digest {
		t.Errorf("the confirmation has expired, held is %+v", got)
	}
	order.Policy.ConfirmedUntil = now.Add(time.Minute)
	if got := ask(stale[1:]); got == nil || got.Digest == held.Digest || got.Count != 29 {
		t.Errorf("another list than was confirmed, held is %+v", got)
	}
	order.Policy.Confirmed = ""
	if news := r.condemn(stale[:15]); !news {
		t.Error("nothing to be written down")
	}
	if got := ask(stale); got != nil {
		t.Errorf("15 of the list were let through before, the others are within the budget, held is %+v", got)
	}
	order.Policy.Allowed = []string{kindClaim}
	order.Policy.Budget = &tunnel.DeletionBudget{Count: 15}
	if got := ask(stale); got == nil || got.Count != 16 {
		t.Errorf("a claim that may go counts, held is %+v", got)
	}
}

func TestARestartKeepsWhatWaitsAndWhatWasLetThrough(t *testing.T) {
	t.Parallel()
	rn, _ := unstarted(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	render := &Render{Objects: tunnel.Layer{Digest: "sha256:0a"}, Sequence: 7}
	held := &tunnel.HeldPrune{Sequence: 7, Count: 30, Total: 31, Digest: "sha256:0b", Objects: []string{"ConfigMap ns/c-00"}}
	record := &Record{
		UID: "r", Order: tunnel.Signed{Payload: []byte(`{"verb":"apply","sequence":7}`)}, Attempt: render, Held: held,
		Inventory: []Entry{
			{Identity: manifest.Identity{Kind: "ConfigMap", Name: "new"}, Render: render.Objects.Digest, UID: "1"},
			{Identity: manifest.Identity{Kind: "ConfigMap", Name: "old"}, UID: "2", Leaving: true},
		},
	}
	r := rn.newRelease("r")
	r.restore(record)
	if r.held != held || r.handled != 7 || !r.settled || r.finding.Reason != "PruneHeld" || r.retryAt.IsZero() || r.total != 1 {
		t.Errorf("held %v, handled %d, settled %v, finding %+v, again at %v, total %d", r.held, r.handled, r.settled, r.finding, r.retryAt, r.total)
	}
	if r.object(manifest.Identity{Kind: "ConfigMap", Name: "old"}).leaving == nil {
		t.Error("what was let through is forgotten")
	}
	next := rn.newRelease("r2")
	record.Held.Sequence = 6
	next.restore(record)
	if next.handled == 7 || next.held != nil {
		t.Error("a newer order than the one that waits is taken for carried out")
	}
}
