// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

func holdNow(reason string) corev1alpha1.HeldDeletion {
	return corev1alpha1.HeldDeletion{Reason: reason, Message: "held", By: "jane", At: metav1.Now().Rfc3339Copy(), Sequence: 10, Digest: "sha256:dd"}
}

func TestAHeldDeletionIsToldOnceAndManyOfANamespaceAsOneOfTheirCluster(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		hold := func(name string) {
			t.Helper()
			if err := h.reporter.Held(t.Context(), types.NamespacedName{Namespace: "team", Name: name}, types.UID("uid-"+name), holdNow(corev1alpha1.HeldByBudget)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range heldEvents + 3 {
			h.ordered(t, fmt.Sprintf("app-%d", i))
		}
		h.events = nil
		hold("app-0")
		hold("app-0")
		equal(t, "events of one that is tried twice", []string{"Release app-0 DeletionHeld"}, h.events)
		for i := range heldEvents + 2 {
			hold(fmt.Sprintf("app-%d", i+1))
		}
		releases, clusters := 0, 0
		for _, e := range h.events {
			switch {
			case strings.HasPrefix(e, "Release "):
				releases++
			case e == "Cluster edge DeletionHeld":
				clusters++
			}
		}
		equal(t, "events of Releases", heldEvents, releases)
		equal(t, "events of their Cluster", 3, clusters)
		pass(heldEventWindow)
		h.events = nil
		hold("app-0")
		equal(t, "events a minute later", []string{"Release app-0 DeletionHeld"}, h.events)

		h.events = nil
		held := holdNow(corev1alpha1.HeldByBudget)
		if err := h.reporter.HeldCluster(t.Context(), types.NamespacedName{Namespace: "team", Name: "edge"}, "c1", held); err != nil {
			t.Fatal(err)
		}
		equal(t, "events of a Cluster's own deletion", []string{"Cluster edge DeletionHeld"}, h.events)
	})
}

func TestWhatWasSaidOfAHeldDeletionGoesWhenItIsOutOfDate(t *testing.T) {
	soon := func(in time.Duration) *metav1.Time { at := metav1.NewTime(time.Now().Add(in)); return &at }
	for name, c := range map[string]struct {
		held    func(*corev1alpha1.HeldDeletion)
		release func(*corev1alpha1.Release)
		after   time.Duration
		stays   bool
	}{
		"it stays as long as nothing has changed": {after: time.Hour, stays: true},
		"it stays until the budget has enough left again": {
			held: func(h *corev1alpha1.HeldDeletion) { h.Until = soon(2 * time.Minute) }, after: time.Minute, stays: true,
		},
		"the budget has enough left again": {
			held: func(h *corev1alpha1.HeldDeletion) { h.Until = soon(2 * time.Minute) }, after: 2 * time.Minute,
		},
		"nobody has tried again for a day": {after: heldFor},
		"another order runs": {
			release: func(r *corev1alpha1.Release) { r.Status.Sequence = 11 },
		},
		"the workloads are kept by now": {
			release: func(r *corev1alpha1.Release) { r.Spec.DeletionPolicy.KeepWorkloads = true },
		},
		"it is being deleted": {
			release: func(r *corev1alpha1.Release) { r.DeletionTimestamp = soon(0) },
		},
		"the garbage collector has no reason any more": {
			held: func(h *corev1alpha1.HeldDeletion) { h.Reason = corev1alpha1.HeldByCollector },
		},
		"the garbage collector has its reason still": {
			held:    func(h *corev1alpha1.HeldDeletion) { h.Reason = corev1alpha1.HeldByCollector },
			release: func(r *corev1alpha1.Release) { r.OwnerReferences = []metav1.OwnerReference{{Name: "gone"}} },
			after:   time.Hour, stays: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inside(t, func(t *testing.T, h *hub) {
				key := h.ordered(t, "web")
				held := holdNow(corev1alpha1.HeldByBudget)
				if c.held != nil {
					c.held(&held)
				}
				if err := h.reporter.Held(t.Context(), key, "uid-web", held); err != nil {
					t.Fatal(err)
				}
				if c.release != nil {
					r, _ := h.Release(key)
					next := r.DeepCopy()
					c.release(next)
					h.add("Release", next)
				}
				pass(c.after)
				h.counted()
				if err := h.reporter.Release(t.Context(), key, "uid-web", Outcome{Generation: 1, Rendered: rendered}); err != nil {
					t.Fatal(err)
				}
				r, _ := h.Release(key)
				equal(t, "stays", c.stays, r.Status.HeldDeletion != nil)
				if c.stays {
					equal(t, "writes", []string(nil), h.counted())
				}
			})
		})
	}
}

func TestWhatWasSaidOfAClustersHeldDeletionGoesWithANewerOrder(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		h.ordered(t, "web")
		key := types.NamespacedName{Namespace: "team", Name: "edge"}
		cluster, _ := h.Cluster(key)
		pruning := cluster.DeepCopy()
		pruning.Spec.DeletionPolicy.PruneReleases = true
		h.add("Cluster", pruning)
		if err := h.reporter.HeldCluster(t.Context(), key, "c1", holdNow(corev1alpha1.HeldByBudget)); err != nil {
			t.Fatal(err)
		}
		cluster, _ = h.Cluster(key)
		equal(t, "is recorded", true, cluster.Status.HeldDeletion != nil)
		equal(t, "is out of date", false, h.reporter.HeldOver(cluster))
		r, _ := h.Release(types.NamespacedName{Namespace: "team", Name: "web"})
		next := r.DeepCopy()
		next.Status.Sequence = 11
		h.add("Release", next)
		equal(t, "is out of date", true, h.reporter.HeldOver(cluster))
		if err := h.reporter.Cluster(t.Context(), key, "c1", func(*corev1alpha1.ClusterStatus) error { return nil }); err != nil {
			t.Fatal(err)
		}
		cluster, _ = h.Cluster(key)
		equal(t, "is recorded", false, cluster.Status.HeldDeletion != nil)
	})
}
