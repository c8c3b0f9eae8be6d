// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestAnObjectMovesToAnotherReleaseWithoutBeingDeleted(t *testing.T) {
	inModes(t, testAnObjectMovesToAnotherReleaseWithoutBeingDeleted)
}

func testAnObjectMovesToAnotherReleaseWithoutBeingDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("move")
	b.apply("move-a", ns, configMap(ns, "moves", "k", "a")+configMap(ns, "left", "k", "a")+configMap(ns, "stays", "k", "a"))
	moves, left := b.get(configmaps, ns, "moves").GetUID(), b.get(configmaps, ns, "left").GetUID()

	// The new one comes first, is refused, and gets it when the old one leaves it out.
	o := b.accept(b.order("move-b", ns, configMap(ns, "moves", "k", "b")))
	if r := b.settled(o); r.Applied.Reason != "OwnedByOther" {
		t.Fatalf("applied is %+v", r.Applied)
	}
	_, r := b.apply("move-a", ns, configMap(ns, "stays", "k", "a")+configMap(ns, "left", "k", "a"))
	if !strings.Contains(r.Applied.Message, "Release apps/move-b has it in its render") {
		t.Errorf("applied is %+v", r.Applied)
	}
	b.applied(o)
	if got := b.get(configmaps, ns, "moves"); got.GetUID() != moves || data(got, "k") != "b" || got.GetAnnotations()["convoy.kumodo.io/owner"] != hubID+"/uid-move-b" {
		t.Errorf("moved is %v", got.Object)
	}

	// The old one lists it as orphaned, and the new one takes it.
	_, r = b.apply("move-a", ns, configMap(ns, "stays", "k", "a"), func(o *tunnel.Order) { o.Policy.PruneOrphaned = false })
	if r.Counts.Orphaned != 1 {
		t.Errorf("counts are %+v", r.Counts)
	}
	b.apply("move-b", ns, configMap(ns, "moves", "k", "b")+configMap(ns, "left", "k", "b"))
	b.report("uid-move-a", "has nothing orphaned any more", func(r tunnel.Report) bool { return r.Counts.Orphaned == 0 })
	if got := b.get(configmaps, ns, "left"); got.GetUID() != left || data(got, "k") != "b" {
		t.Errorf("taken is %v", got.Object)
	}
	b.accept(b.bare("move-a", tunnel.VerbRemove))
	b.report("uid-move-a", "removed", func(r tunnel.Report) bool { return r.Done })
	b.gone(configmaps, ns, "stays")
	b.get(configmaps, ns, "moves")
	b.get(configmaps, ns, "left")
}

func TestAllThatAnotherReleaseWantsMovesToItWhateverItDoesMeanwhile(t *testing.T) {
	inModes(t, testAllThatAnotherReleaseWantsMovesToItWhateverItDoesMeanwhile)
}

// Each object that is let go wakes the new one, which tries again; in one of two it
// never tried, since its Release is suspended. In one of two the old one is removed.
func testAllThatAnotherReleaseWantsMovesToItWhateverItDoesMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i, name := range []string{"left out", "removed", "left out, new one suspended", "removed, new one suspended"} {
		removed, suspended := i%2 == 1, i >= 2
		ns := b.namespace(fmt.Sprintf("moves-%d", i))
		old, next := fmt.Sprintf("old-%d", i), fmt.Sprintf("next-%d", i)
		all := ""
		for n := range 12 {
			all += configMap(ns, fmt.Sprintf("c-%02d", n), "k", "v")
		}
		b.apply(old, ns, all+configMap(ns, "stays", "k", "v"))
		before := map[string]types.UID{}
		for n := range 12 {
			object := fmt.Sprintf("c-%02d", n)
			before[object] = b.get(configmaps, ns, object).GetUID()
		}
		o := b.accept(b.order(next, ns, all, func(o *tunnel.Order) { o.Policy.Suspended = suspended }))
		b.settled(o)
		if removed {
			b.accept(b.bare(old, tunnel.VerbRemove))
			b.report("uid-"+old, "removed", func(r tunnel.Report) bool { return r.Done })
		} else {
			b.apply(old, ns, configMap(ns, "stays", "k", "v"))
		}
		if suspended {
			o = b.accept(b.order(next, ns, all))
		}
		b.applied(o)
		for object, uid := range before {
			if got := b.get(configmaps, ns, object); got.GetUID() != uid || got.GetAnnotations()["convoy.kumodo.io/owner"] != hubID+"/uid-"+next {
				t.Errorf("%s: %s is %v, its UID was %s", name, object, got.Object["metadata"], uid)
			}
		}
		if removed {
			b.gone(configmaps, ns, "stays")
		}
	}
}

func TestWhatAReleaseLetsGoIsTakenOverAtOnceHoweverLongTheNewOneWouldRest(t *testing.T) {
	inModes(t, testWhatAReleaseLetsGoIsTakenOverAtOnceHoweverLongTheNewOneWouldRest)
}

func testWhatAReleaseLetsGoIsTakenOverAtOnceHoweverLongTheNewOneWouldRest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	resting := func(o *tunnel.Order) { o.Policy.Retry = &tunnel.Retry{Limit: -1, MinSeconds: 3600, MaxSeconds: 3600} }
	for i, way := range []string{"kept workloads", "orphaned", "left out"} {
		ns := b.namespace(fmt.Sprintf("letgo-%d", i))
		old, next := fmt.Sprintf("letgo-old-%d", i), fmt.Sprintf("letgo-next-%d", i)
		b.apply(old, ns, configMap(ns, "moves", "k", "old")+configMap(ns, "stays", "k", "v"))
		uid := b.get(configmaps, ns, "moves").GetUID()
		o := b.accept(b.order(next, ns, configMap(ns, "moves", "k", "new"), resting))
		if r := b.settled(o); r.Applied.Reason != "OwnedByOther" {
			t.Fatalf("%s: applied is %+v", way, r.Applied)
		}
		switch way {
		case "kept workloads":
			b.accept(b.bare(old, tunnel.VerbRelease))
		case "orphaned":
			b.accept(b.order(old, ns, configMap(ns, "stays", "k", "v"), func(o *tunnel.Order) { o.Policy.PruneOrphaned = false }))
		default:
			b.accept(b.order(old, ns, configMap(ns, "stays", "k", "v")))
		}
		b.applied(o)
		if got := b.get(configmaps, ns, "moves"); got.GetUID() != uid || data(got, "k") != "new" || got.GetAnnotations()["convoy.kumodo.io/owner"] != hubID+"/uid-"+next {
			t.Errorf("%s: moved is %v, its UID was %s", way, got.Object, uid)
		}
	}
}

func TestWhatAnotherNamespaceOfTheHubWantsIsNeitherHandedOverNorKeptForIt(t *testing.T) {
	inModes(t, testWhatAnotherNamespaceOfTheHubWantsIsNeitherHandedOverNorKeptForIt)
}

func testWhatAnotherNamespaceOfTheHubWantsIsNeitherHandedOverNorKeptForIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("move-no")
	stranger := func(o *tunnel.Order) { o.Release.Namespace = "strangers" }
	b.apply("mine", ns, configMap(ns, "orphan", "k", "a")+configMap(ns, "pruned", "k", "a")+configMap(ns, "stays", "k", "a"))
	b.apply("mine", ns, configMap(ns, "pruned", "k", "a")+configMap(ns, "stays", "k", "a"), func(o *tunnel.Order) { o.Policy.PruneOrphaned = false })
	r := b.settled(b.accept(b.order("theirs", ns, configMap(ns, "orphan", "k", "b")+configMap(ns, "pruned", "k", "b"), stranger)))
	if r.Applied.Reason != "OwnedByOther" || len(r.Exceptions) != 2 {
		t.Errorf("applied %+v, exceptions %+v", r.Applied, r.Exceptions)
	}
	if data(b.get(configmaps, ns, "orphan"), "k") != "a" {
		t.Error("the orphan was taken")
	}
	uid := b.get(configmaps, ns, "pruned").GetUID()
	_, after := b.apply("mine", ns, configMap(ns, "stays", "k", "a"))
	if strings.Contains(after.Applied.Message, "kept") {
		t.Errorf("applied is %+v", after.Applied)
	}
	if list, err := b.plane.Client().CoreV1().ConfigMaps(ns).Get(b.ctx, "pruned", metav1.GetOptions{}); err == nil && list.UID == uid {
		t.Error("kept for a stranger")
	}
}
