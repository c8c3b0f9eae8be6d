// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/pkg/tunnel"
)

// usurp deletes a ConfigMap of a Release and makes another of its name, as somebody else.
func (b *bench) usurp(ns, name string, values map[string]any) string {
	b.t.Helper()
	b.taken(configmaps, ns, name)
	made, err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Create(b.ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": values,
	}}, metav1.CreateOptions{FieldManager: "someone"})
	if err != nil {
		b.t.Fatal(err)
	}
	return string(made.GetUID())
}

// stands fails unless an object is the one that somebody made, with his values and without
// our marks.
func (b *bench) stands(ns, name, uid string) {
	b.t.Helper()
	got := b.live(configmaps, ns, name, "let go", func(u *unstructured.Unstructured) bool {
		return u.GetAnnotations()["convoy.kumodo.io/owner"] == ""
	})
	if string(got.GetUID()) != uid || data(got, "other") != "owner" || got.GetDeletionTimestamp() != nil || got.GetLabels()["convoy.kumodo.io/managed"] != "" {
		b.t.Errorf("what somebody made is %v", got.Object)
	}
}

func TestPR09WhatSomebodyMadeAnewWhileNobodyLookedIsTakenOverAndNeverDeleted(t *testing.T) {
	inModes(t, testPR09WhatSomebodyMadeAnewWhileNobodyLookedIsTakenOverAndNeverDeleted)
}

func testPR09WhatSomebodyMadeAnewWhileNobodyLookedIsTakenOverAndNeverDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("pr09")
	stays := configMap(ns, "stays", "k", "v")
	v1 := configMap(ns, "remade", "k", "v") + configMap(ns, "adopted", "k", "v") + stays
	b.apply("pr09", ns, v1)
	b.halt()
	uid := b.usurp(ns, "remade", map[string]any{"other": "owner"})
	b.start()
	b.live(configmaps, ns, "remade", "taken over", func(u *unstructured.Unstructured) bool {
		return data(u, "k") == "v" && u.GetAnnotations()["convoy.kumodo.io/owner"] != ""
	})
	r := b.report("uid-pr09", "taken over", func(r tunnel.Report) bool {
		return r.Settled && r.InSync.Status == tunnel.True && r.Operation != nil && r.Operation.Type == "Heal"
	})
	if !strings.Contains(r.Operation.Message, "made anew by somebody else, taken over") {
		t.Errorf("the operation says %q", r.Operation.Message)
	}
	b.restartInMode()
	b.report("uid-pr09", "at rest", func(r tunnel.Report) bool { return r.Settled && r.InSync.Status == tunnel.True })
	_, r = b.apply("pr09", ns, stays, func(o *tunnel.Order) { o.Policy.Budget = &tunnel.DeletionBudget{Count: 1} })
	if !strings.Contains(r.Applied.Message, "kept ConfigMap pr09/remade: it was made by somebody else") {
		t.Errorf("applied is %+v", r.Applied)
	}
	b.gone(configmaps, ns, "adopted")
	b.stands(ns, "remade", uid)
}

func TestPR09WhatSomebodyMadeAnewIsTakenOverByASyncAndOutlivesTheRelease(t *testing.T) {
	inModes(t, testPR09WhatSomebodyMadeAnewIsTakenOverByASyncAndOutlivesTheRelease)
}

func testPR09WhatSomebodyMadeAnewIsTakenOverByASyncAndOutlivesTheRelease(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("pr09-sync")
	manual := func(o *tunnel.Order) { o.Policy.Automatic = false }
	byHand := configMap(ns, "by-hand", "k", "v1")
	render := func(value string) string {
		return configMap(ns, "removed", "k", value) + configMap(ns, "released", "k", value) + configMap(ns, "stays", "k", value) + byHand
	}
	b.apply("pr09-sync", ns, render("v1"), manual)
	b.taken(configmaps, ns, "by-hand")
	if _, err := b.plane.KubectlInput(b.ctx, configMap(ns, "by-hand", "k", "kubectl", "other", "owner"), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	removed := b.usurp(ns, "removed", map[string]any{"other": "owner"})
	released := b.usurp(ns, "released", map[string]any{"other": "owner"})
	b.report("uid-pr09-sync", "that they are gone", func(r tunnel.Report) bool { return r.Counts.Drifted == 3 })
	b.apply("pr09-sync", ns, render("v2"), manual)
	if got := b.get(configmaps, ns, "by-hand"); data(got, "k") != "v1" || data(got, "other") != "owner" {
		t.Errorf("taken over is %v", got.Object)
	}
	for _, name := range []string{"removed", "released"} {
		if got := b.get(configmaps, ns, name); data(got, "k") != "v2" || data(got, "other") != "owner" {
			t.Errorf("taken over is %v", got.Object)
		}
	}
	// It passes to another Release, and is no more that one's to delete.
	b.apply("pr09-sync", ns, configMap(ns, "removed", "k", "v2")+configMap(ns, "stays", "k", "v2"), func(o *tunnel.Order) { o.Policy.PruneOrphaned = false })
	b.apply("pr09-next", ns, configMap(ns, "released", "k", "v3"))
	for _, release := range []string{"pr09-sync", "pr09-next"} {
		b.accept(b.bare(release, tunnel.VerbRemove))
		b.report("uid-"+release, "removed", func(r tunnel.Report) bool { return r.Done && r.Settled })
	}
	b.gone(configmaps, ns, "stays")
	b.stands(ns, "removed", removed)
	b.stands(ns, "released", released)
}

func TestPR09FieldsOfWhoMadeAnObjectAnewAreTakenOnlyIfThePolicySaysSo(t *testing.T) {
	inModes(t, testPR09FieldsOfWhoMadeAnObjectAnewAreTakenOnlyIfThePolicySaysSo)
}

func testPR09FieldsOfWhoMadeAnObjectAnewAreTakenOnlyIfThePolicySaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("pr09-fields")
	render := configMap(ns, "remade", "k", "v")
	b.apply("pr09-fields", ns, render)
	b.halt()
	uid := b.usurp(ns, "remade", map[string]any{"k": "theirs", "other": "owner"})
	b.start()
	refused := func(r tunnel.Report) bool {
		return r.InSync.Status == tunnel.False && len(r.Exceptions) > 0 && r.Exceptions[0].Reason == "Conflict" &&
			strings.Contains(r.Exceptions[0].Message, `data.k managed by "someone"`)
	}
	b.report("uid-pr09-fields", "a conflict", refused)
	// Nor by a sync: that a field was ours was in another object.
	o := b.accept(b.order("pr09-fields", ns, configMap(ns, "remade", "k", "v2")))
	if r := b.settled(o); r.Applied.Reason != "Conflict" {
		t.Errorf("applied is %+v", r.Applied)
	}
	if got := b.get(configmaps, ns, "remade"); data(got, "k") != "theirs" || string(got.GetUID()) != uid || got.GetAnnotations()["convoy.kumodo.io/owner"] != "" {
		t.Errorf("it was changed: %v", got.Object)
	}
	b.apply("pr09-fields", ns, configMap(ns, "remade", "k", "v2"), func(o *tunnel.Order) { o.Policy.ForceConflicts = true })
	b.accept(b.bare("pr09-fields", tunnel.VerbRemove))
	b.report("uid-pr09-fields", "removed", func(r tunnel.Report) bool { return r.Done && r.Settled })
	b.stands(ns, "remade", uid)
}
