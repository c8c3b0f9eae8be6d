// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

func holds(names ...string) func(*tunnel.Report) {
	return func(r *tunnel.Report) {
		r.Inventory = []tunnel.InventoryEntry{}
		for _, name := range names {
			r.Inventory = append(r.Inventory, tunnel.InventoryEntry{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: name, UID: "uid-of-" + name})
		}
	}
}

func TestWhatAnAgentThatWasInstalledAnewForgotIsNamed(t *testing.T) {
	onAnother := func(r *tunnel.Report) {
		for i := range r.Inventory {
			r.Inventory[i].UID += "-on-another-cluster"
		}
	}
	for _, test := range []struct {
		name string
		// reset: another target stands behind the Cluster.
		forgets, reset bool
		after          func(*tunnel.Report)
		more           func(*tunnel.Report)
		want           []string
		count          int32
	}{
		{name: "an object that left the render meanwhile", forgets: true, after: holds("w", "ic"), want: []string{"Release web LeftBehind"}, count: 1},
		{name: "all of it", forgets: true, after: holds("other"), want: []string{"Release web LeftBehind"}, count: 1},
		{name: "nothing left the render", forgets: true, after: holds("w", "ic", "drop")},
		{name: "an agent that has its record prunes", after: holds("w", "ic")},
		{name: "another cluster, which was told of", forgets: true, reset: true, after: holds("w", "ic")},
		{name: "another cluster, whose objects are others", forgets: true, after: holds("w", "ic"), more: onAnother},
	} {
		t.Run(test.name, func(t *testing.T) {
			inside(t, func(t *testing.T, h *hub) {
				h.ordered(t, "web")
				h.reporter.Forgotten("c1", []types.UID{"uid-web", "uid-unheard-of"})
				h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1, holds("w", "ic", "drop"))})
				if cluster, _ := h.Cluster(keyOf(edge)); cluster.Status.LeftBehind != 0 {
					t.Error("a Release that was new is taken for a forgotten one")
				}
				if test.reset {
					if err := h.reporter.Reset(t.Context(), edge); err != nil {
						t.Fatal(err)
					}
				}
				if test.forgets {
					h.reporter.Forgotten("c1", []types.UID{"uid-web"})
				}
				h.reporter.Connected(edge)
				synctest.Wait()
				h.events = nil
				more := test.more
				if more == nil {
					more = func(*tunnel.Report) {}
				}
				// A sync that fails, and has looked after some of it only, is not the end of it.
				failed := func(r *tunnel.Report) { r.AppliedRef = "" }
				if test.forgets {
					h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1, holds("w"), more, failed)})
				}
				h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 2, test.after, more)})
				h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 3, holds("w"), more)})
				var got []string
				for _, event := range h.events {
					if event == "Release web LeftBehind" {
						got = append(got, event)
					}
				}
				equal(t, "Events", test.want, got)
				cluster, _ := h.Cluster(keyOf(edge))
				equal(t, "left behind", test.count, cluster.Status.LeftBehind)
			})
		})
	}
}

func TestADeletedReleaseThatAnAgentForgotIsCounted(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		ref, began := tunnel.ReleaseRef{UID: "uid-web", Namespace: "team", Name: "web"}, h.reporter.clock.Now()
		pass(time.Second)
		if err := h.reporter.NotGone(t.Context(), "c1", ref, began); err != nil {
			t.Fatal(err)
		}
		equal(t, "Events", []string{"Cluster edge LeftBehind"}, h.events)
		// What was ordered before another target came is not there, nor is a Cluster that went.
		if err := h.reporter.Reset(t.Context(), edge); err != nil {
			t.Fatal(err)
		}
		for _, cluster := range []types.UID{"c1", "c0"} {
			if err := h.reporter.NotGone(t.Context(), cluster, ref, began); err != nil {
				t.Error(err)
			}
		}
		cluster, _ := h.Cluster(keyOf(edge))
		equal(t, "left behind", int32(1), cluster.Status.LeftBehind)
	})
}

func TestWhatIsLeftIsNamedInOrderAndTheRestCounted(t *testing.T) {
	var before []corev1alpha1.InventoryEntry
	for _, name := range []string{"j", "i", "h", "g", "f", "e", "d", "c", "b", "a"} {
		before = append(before, corev1alpha1.InventoryEntry{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: name})
	}
	before = append(before, corev1alpha1.InventoryEntry{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "z"})
	equal(t, "named", "ClusterRole z, ConfigMap team/a, ConfigMap team/b, ConfigMap team/c, ConfigMap team/d, ConfigMap team/e, ConfigMap team/f, ConfigMap team/g and 3 more",
		named(leftOf(before, nil)))
}
