// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestADeletedObjectIsMadeAgain(t *testing.T) { inModes(t, testADeletedObjectIsMadeAgain) }

func testADeletedObjectIsMadeAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("heal-delete")
	b.apply("heal-delete", ns, configMap(ns, "one", "k", "v"))
	old := b.get(configmaps, ns, "one").GetUID()
	if err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Delete(b.ctx, "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.live(configmaps, ns, "one", "made again", func(u *unstructured.Unstructured) bool { return u.GetUID() != old })
	r := b.report("uid-heal-delete", "healed", func(r tunnel.Report) bool {
		return r.Operation.Type == "Heal" && r.Settled && r.InSync.Status == tunnel.True && r.Healthy.Status == tunnel.True
	})
	if !strings.Contains(r.Operation.Message, "was deleted, made again") {
		t.Errorf("the operation says %q", r.Operation.Message)
	}
	// What was acknowledged before names an object that is gone.
	is := string(b.get(configmaps, ns, "one").GetUID())
	b.report("uid-heal-delete", "the inventory with the new UID", func(r tunnel.Report) bool {
		return len(r.Inventory) == 1 && r.Inventory[0].UID == is
	})
}

func TestADeletedNamespaceComesBackWithAllInIt(t *testing.T) {
	inModes(t, testADeletedNamespaceComesBackWithAllInIt)
}

func testADeletedNamespaceComesBackWithAllInIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	documents := "apiVersion: v1\nkind: Namespace\nmetadata: {name: heal-ns}\n---\n"
	for i := range 5 {
		documents += configMap("heal-ns", fmt.Sprintf("c%d", i), "k", "v")
	}
	b.apply("heal-ns", "heal-ns-fallback", documents)
	old := b.get(namespaces, "", "heal-ns").GetUID()
	if err := b.plane.Dynamic().Resource(namespaces).Delete(b.ctx, "heal-ns", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.live(namespaces, "", "heal-ns", "made again", func(u *unstructured.Unstructured) bool { return u.GetUID() != old })
	b.report("uid-heal-ns", "whole again", func(r tunnel.Report) bool {
		return r.Settled && r.InSync.Status == tunnel.True && r.Healthy.Status == tunnel.True && r.Counts.Applied == 6 && r.Operation.Type == "Heal"
	})
	for i := range 5 {
		b.get(configmaps, "heal-ns", fmt.Sprintf("c%d", i))
	}
}

func TestTwoEditsWithinASecondAreBothHealed(t *testing.T) {
	inModes(t, testTwoEditsWithinASecondAreBothHealed)
}

func testTwoEditsWithinASecondAreBothHealed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("heal-twice")
	b.apply("heal-twice", ns, configMap(ns, "one", "k", "v", "l", "w"))
	start := time.Now()
	for i := range 4 {
		b.edit(configmaps, ns, "one", "somebody", fmt.Sprintf(`{"data":{"k":"edit %d","l":"edit %d"}}`, i, i))
		if i%2 == 1 {
			b.live(configmaps, ns, "one", "healed", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v" && data(u, "l") == "w" })
		}
	}
	t.Logf("four edits, two repairs in %s", time.Since(start))
	b.report("uid-heal-twice", "in sync", func(r tunnel.Report) bool { return r.Settled && r.InSync.Status == tunnel.True })
}

func TestEmptiedManagedFieldsAreRestoredAndALaterRenderStillDropsItsKey(t *testing.T) {
	inModes(t, testEmptiedManagedFieldsAreRestoredAndALaterRenderStillDropsItsKey)
}

func testEmptiedManagedFieldsAreRestoredAndALaterRenderStillDropsItsKey(t *testing.T) {
	t.Parallel()
	for _, fast := range []bool{false, true} {
		name := map[bool]string{false: "seen first", true: "with the next order at once"}[fast]
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			ns := b.namespace(fmt.Sprintf("heal-fields-%v", fast))
			release := "heal-fields-" + fmt.Sprint(fast)
			b.apply(release, ns, configMap(ns, "one", "keep", "v", "drop", "v"))
			// A field of somebody else, which must survive.
			b.edit(configmaps, ns, "one", "somebody", `{"data":{"theirs":"x"}}`)
			next := b.order(release, ns, configMap(ns, "one", "keep", "v2"))
			_, err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Patch(b.ctx, "one", types.MergePatchType,
				[]byte(`{"metadata":{"managedFields":[{}]}}`), metav1.PatchOptions{FieldManager: "somebody"})
			if err != nil {
				t.Fatal(err)
			}
			if !fast {
				b.live(configmaps, ns, "one", "ours again", func(u *unstructured.Unstructured) bool {
					return slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
						return e.Manager == "convoy" && e.Operation == "Apply"
					})
				})
			}
			b.accept(next)
			b.applied(next)
			got := b.get(configmaps, ns, "one")
			if data(got, "keep") != "v2" || data(got, "drop") != "" || data(got, "theirs") != "x" {
				t.Errorf("the data are %v", got.Object["data"])
			}
			for _, e := range got.GetManagedFields() {
				if e.Manager == "before-first-apply" {
					t.Error("the made-up manager still owns fields")
				}
			}
		})
	}
}

func TestRemovedMarksComeBack(t *testing.T) { inModes(t, testRemovedMarksComeBack) }

func testRemovedMarksComeBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("heal-marks")
	b.apply("heal-marks", ns, configMap(ns, "one", "k", "v"))
	uid := b.get(configmaps, ns, "one").GetUID()
	b.edit(configmaps, ns, "one", "somebody", `{"metadata":{"labels":{"convoy.kumodo.io/managed":null}}}`)
	marked := func(u *unstructured.Unstructured) bool {
		return u.GetLabels()["convoy.kumodo.io/managed"] == hubID && u.GetAnnotations()["convoy.kumodo.io/owner"] != ""
	}
	b.live(configmaps, ns, "one", "marked again", marked)
	b.edit(configmaps, ns, "one", "somebody", `{"metadata":{"annotations":null,"labels":null}}`)
	got := b.live(configmaps, ns, "one", "marked again", marked)
	if got.GetUID() != uid {
		t.Error("the object was made anew")
	}
	// And the watch still sees it.
	b.edit(configmaps, ns, "one", "somebody", `{"data":{"k":"edited"}}`)
	b.live(configmaps, ns, "one", "healed", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v" })
}

func TestDriftIsToldButLeftWhenNotAutomatic(t *testing.T) {
	inModes(t, testDriftIsToldButLeftWhenNotAutomatic)
}

func testDriftIsToldButLeftWhenNotAutomatic(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("manual")
	b.apply("manual", ns, configMap(ns, "one", "k", "v"), func(o *tunnel.Order) { o.Policy.Automatic = false })
	b.edit(configmaps, ns, "one", "somebody", `{"data":{"k":"edited"}}`)
	r := b.report("uid-manual", "drifted", func(r tunnel.Report) bool { return r.InSync.Status == tunnel.False && r.Settled })
	if r.Counts.Drifted != 1 || len(r.Exceptions) != 1 || r.Exceptions[0].Reason != "Drifted" {
		t.Errorf("the report has %+v %+v", r.Counts, r.Exceptions)
	}
	if data(b.get(configmaps, ns, "one"), "k") != "edited" {
		t.Error("the edit was undone")
	}
	b.edit(configmaps, ns, "one", "somebody", `{"data":{"k":"v"}}`)
	// The value is back; only its ownership differs now, which a sync puts right.
	b.apply("manual", ns, configMap(ns, "one", "k", "v"), func(o *tunnel.Order) { o.Policy.Automatic = false })
}

func TestAFightIsNoticedAndSlowedDown(t *testing.T) { inModes(t, testAFightIsNoticedAndSlowedDown) }

func testAFightIsNoticedAndSlowedDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("fight")
	b.apply("fight", ns, configMap(ns, "one", "k", "v"))
	contested := func(r tunnel.Report) bool {
		return len(r.Exceptions) > 0 && r.Exceptions[0].Reason == "Contested" && strings.Contains(r.Exceptions[0].Message, `"rival"`)
	}
	for range 200 {
		b.edit(configmaps, ns, "one", "rival", fmt.Sprintf(`{"data":{"k":"rival %d"}}`, time.Now().UnixNano()))
		b.mu.Lock()
		r := b.latest["uid-fight"]
		b.mu.Unlock()
		if contested(r) {
			break
		}
		select {
		case <-b.changed:
		case <-time.After(50 * time.Millisecond):
		}
	}
	r := b.report("uid-fight", "contested", contested)
	if r.Exceptions[0].Name != "one" {
		t.Errorf("exceptions are %+v", r.Exceptions)
	}
	// It is one fight, however often it is repaired in between.
	for range 2 {
		b.edit(configmaps, ns, "one", "rival", fmt.Sprintf(`{"data":{"k":"rival %d"}}`, time.Now().UnixNano()))
		b.live(configmaps, ns, "one", "repaired", healedTo("v"))
	}
	b.report("uid-fight", "that it was repaired", func(r tunnel.Report) bool { return contested(r) && r.Counts.Drifted == 0 })
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, later := range b.all {
		if contested(later) && !later.Exceptions[0].Since.Equal(r.Exceptions[0].Since) {
			t.Errorf("the fight is told since %v, and since %v", r.Exceptions[0].Since, later.Exceptions[0].Since)
		}
	}
}

func TestAFightWithAnotherAgentIsNamedSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("fight-own")
	b.apply("fight-own", ns, configMap(ns, "one", "k", "v"))
	contested := func(r tunnel.Report) bool {
		return len(r.Exceptions) > 0 && r.Exceptions[0].Reason == "Contested" && strings.Contains(r.Exceptions[0].Message, "another agent that has an order for the same Release")
	}
	force := true
	for n := range 200 {
		u := b.get(configmaps, ns, "one")
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","annotations":{"convoy.kumodo.io/owner":%q},"labels":{"convoy.kumodo.io/managed":%q}},"data":{"k":"other %d"}}`,
			u.GetAnnotations()["convoy.kumodo.io/owner"], u.GetLabels()["convoy.kumodo.io/managed"], n)
		_, err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Patch(b.ctx, "one", types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "convoy", Force: &force})
		if err != nil {
			t.Fatal(err)
		}
		b.mu.Lock()
		r := b.latest["uid-fight-own"]
		b.mu.Unlock()
		if contested(r) {
			break
		}
		select {
		case <-b.changed:
		case <-time.After(50 * time.Millisecond):
		}
	}
	b.report("uid-fight-own", "that another agent fights", contested)
}

func TestACutWatchMissesNothing(t *testing.T) { inModes(t, testACutWatchMissesNothing) }

func testACutWatchMissesNothing(t *testing.T) {
	t.Parallel()
	b := newIdleBench(t)
	cut := cutter{}
	b.config.Wrap(cut.around)
	b.start()
	ns := b.namespace("watch-cut")
	b.apply("watch-cut", ns, configMap(ns, "one", "k", "v")+configMap(ns, "two", "k", "v"))
	cuts := 0
	for i := range 3 {
		cuts += cut.all()
		b.edit(configmaps, ns, "one", "somebody", fmt.Sprintf(`{"data":{"k":"edit %d"}}`, i))
		if err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Delete(b.ctx, "two", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		b.live(configmaps, ns, "one", "healed", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v" })
		b.live(configmaps, ns, "two", "made again", func(u *unstructured.Unstructured) bool { return u.GetDeletionTimestamp() == nil })
	}
	if cuts == 0 {
		t.Error("there was no watch to cut")
	}
}

func TestAtRestThereAreNoCallsAndAfterARestartNoWrites(t *testing.T) {
	inModes(t, testAtRestThereAreNoCallsAndAfterARestartNoWrites)
}

func testAtRestThereAreNoCallsAndAfterARestartNoWrites(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("rest")
	b.apply("rest", ns, configMap(ns, "one", "k", "v")+configMap(ns, "two", "k", "v")+`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: "example/app:1", resources: {requests: {cpu: 0.5, memory: 1000M}}}]
`)
	idle := func(what string) {
		t.Helper()
		n := b.calls.n.Load()
		select {
		case <-time.After(4 * time.Second): // saving and tidying up are done by then
		case <-b.ctx.Done():
		}
		from := b.calls.n.Load()
		select {
		case <-time.After(3 * time.Second):
		case <-b.ctx.Done():
		}
		if made := b.calls.since(from); len(made) > 0 {
			t.Errorf("calls at rest, %s: %v (settling took %d)", what, made, from-n)
		}
	}
	idle("after the apply")
	// Status and foreign fields are no drift.
	b.edit(deployments, ns, "web", "somebody", `{"metadata":{"annotations":{"theirs":"x"}}}`)
	idle("after somebody added a field of his own")
	b.halt()
	b.blobs.setAway(true)
	writes := b.calls.writes.Load()
	b.start()
	b.report("uid-rest", "in sync after a restart", func(r tunnel.Report) bool {
		return r.Settled && r.InSync.Status == tunnel.True && r.Healthy.Status == tunnel.True
	})
	idle("after a restart")
	if n := b.calls.writes.Load() - writes; n != 0 {
		t.Errorf("%d writes after a restart without drift", n)
	}
	b.edit(configmaps, ns, "one", "somebody", `{"data":{"k":"edited"}}`)
	b.live(configmaps, ns, "one", "healed with the hub away", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v" })
}

func TestDriftThatHappenedWhileNothingRanIsHealedAtTheStart(t *testing.T) {
	inModes(t, testDriftThatHappenedWhileNothingRanIsHealedAtTheStart)
}

func testDriftThatHappenedWhileNothingRanIsHealedAtTheStart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("asleep")
	b.apply("asleep", ns, configMap(ns, "one", "k", "v")+configMap(ns, "two", "k", "v"))
	b.halt()
	b.blobs.setAway(true)
	b.edit(configmaps, ns, "one", "somebody", `{"data":{"k":"edited"}}`)
	if err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Delete(b.ctx, "two", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.start()
	b.live(configmaps, ns, "one", "healed", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v" })
	b.live(configmaps, ns, "two", "made again", func(*unstructured.Unstructured) bool { return true })
}
