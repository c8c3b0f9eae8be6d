// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestOnlyWhatHooksOfTheReleaseMadeMayBeDeletedForThem(t *testing.T) {
	t.Parallel()
	const none, ours, other = "", "ours", "hub/other"
	permit := func(o *tunnel.Order) { o.Policy.ForceConflicts = true }
	for name, c := range map[string]struct {
		kind      string
		keep      bool
		policy    func(*tunnel.Order)
		known     *HookRun // its UID, or Onto, or Former is that of the object
		inventory *object
		owner     string
		byHook    bool
		may, del  bool
	}{
		"nobody's Secret":                                 {kind: "Secret", owner: none},
		"nobody's Deployment":                             {kind: "Deployment", owner: none},
		"nobody's Job":                                    {kind: "Job", owner: none},
		"nobody's, for a hook that is kept":               {kind: "Secret", keep: true, owner: none, may: true},
		"nobody's, where fields are taken":                {kind: "Secret", policy: permit, owner: none, may: true},
		"nobody's Job, where fields are taken":            {kind: "Job", policy: permit, owner: none},
		"one that fields were taken of":                   {kind: "Secret", known: &HookRun{UID: "uid", Onto: "uid"}, owner: ours, byHook: true, may: true},
		"the same, and fields are taken again":            {kind: "Secret", policy: permit, known: &HookRun{UID: "uid", Onto: "uid", Created: true}, owner: ours, byHook: true, may: true},
		"one that a hook made":                            {kind: "Secret", known: &HookRun{UID: "uid", Created: true}, owner: ours, byHook: true, may: true, del: true},
		"one that a hook made and whose mark is off":      {kind: "Secret", known: &HookRun{UID: "uid", Created: true}, owner: none, may: true},
		"one with our marks, of which nothing is known":   {kind: "Secret", owner: ours, byHook: true, may: true},
		"one under the name of one that a hook made":      {kind: "Secret", known: &HookRun{UID: "before", Created: true}, owner: none},
		"a Job with our marks, of which nothing is known": {kind: "Job", owner: ours, byHook: true, may: true, del: true},
		"one that the Release made before it was a hook":  {kind: "Secret", known: &HookRun{Former: "uid"}, owner: ours, may: true, del: true},
		"one that the Release took before it was a hook":  {kind: "Secret", known: &HookRun{Onto: "uid"}, owner: ours, may: true},
		"one of the inventory that the Release made":      {kind: "Secret", inventory: &object{uid: "uid", created: true}, owner: ours, may: true, del: true},
		"one of the inventory that the Release took":      {kind: "Secret", inventory: &object{uid: "uid"}, owner: ours, may: true},
		"a Job of the inventory that the Release took":    {kind: "Job", inventory: &object{uid: "uid"}, owner: ours},
		"another Release's":                               {kind: "Secret", policy: permit, keep: true, owner: other, byHook: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, p := hooking(t)
			h := &hook{item: item{id: manifest.Identity{Kind: c.kind, Namespace: "ns", Name: "n"}}, before: true, keep: c.keep}
			if c.kind == "Job" {
				h.id.Group = "batch"
			}
			order := applyOrder(7, "sha256:01")
			r.beginRound(order, p, false)
			if c.policy != nil {
				c.policy(&order)
			}
			if c.known != nil {
				c.known.Identity = h.id
				r.runs = append(r.runs, c.known)
			}
			if c.inventory != nil {
				r.objects[h.id] = c.inventory
			}
			annotations := map[string]string{}
			if c.owner == ours {
				c.owner = r.marks.owner
			}
			if c.owner != none {
				annotations[v1alpha1.AnnotationOwner] = c.owner
			}
			if c.byHook {
				annotations[v1alpha1.AnnotationHookRun] = "6-1"
			}
			del, err := r.claim(order, h, "uid", annotations)
			if err == nil != c.may || del != c.del {
				t.Errorf("may be changed: %v (%v), want %v; may be deleted: %v, want %v", err == nil, err, c.may, del, c.del)
			}
			if c.known != nil && c.known.UID == "uid" && c.known.mayGo() != c.known.Created && c.known.Onto != "uid" {
				t.Error("its run says another thing")
			}
		})
	}
}

func TestARunThatWasAppliedOntoAnotherObjectIsNeverDoomed(t *testing.T) {
	t.Parallel()
	r, p := hooking(t)
	order := applyOrder(7, "sha256:01")
	r.beginRound(order, p, false)
	h := &hook{item: item{id: manifest.Identity{Kind: "Secret", Namespace: "ns", Name: "n"}}, onSuccess: true, onFailure: true}
	for name, c := range map[string]struct {
		run  HookRun
		want bool
	}{
		"made by the hook":                   {HookRun{UID: "a", Created: true}, true},
		"made by the hook after another one": {HookRun{UID: "a", Onto: "b", Created: true}, true},
		"there before":                       {HookRun{UID: "a", Onto: "a"}, false},
		"of a record that does not say it":   {HookRun{UID: "a"}, false},
	} {
		run := r.newRunLocked(h, phasePreSync, order, time.Minute)
		run.UID, run.Onto, run.Created = c.run.UID, c.run.Onto, c.run.Created
		r.stopRunLocked(run, runFailed, "late")
		if run.Doomed != c.want || run.standsBefore("a") == c.want {
			t.Errorf("%s: doomed %v, stood before %v", name, run.Doomed, run.standsBefore("a"))
		}
	}
	// Killed between the apply and the answer: the name of the run is on it.
	run := &HookRun{Onto: "a"}
	if !run.standsBefore("a") || run.standsBefore("b") {
		t.Error("what the run was applied to is not told from what it made")
	}
}
