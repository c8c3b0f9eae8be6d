// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestHA06AClusterMadeAgainUnderItsNameIsAppliedAnewAndTheOldOneIsLeftAlone is the case
// for a Cluster that the hub dials: its kubeconfig leads to a cluster of another UID.
// With an agent it is played in e2e/cases; the hub's own cluster is not made again
// without the hub.
func TestHA06AClusterMadeAgainUnderItsNameIsAppliedAnewAndTheOldOneIsLeftAlone(t *testing.T) {
	t.Parallel()
	t.Run(agentless, func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		const ns = "t-ha-06"
		old, remade := b.plane, planes[direct]
		b.namespace(ns)
		o, _ := b.apply("ha06", ns, configMap(ns, "app", "v", "1"))
		before := b.get(configmaps, ns, "app")
		first := b.room.target()

		b.plane = remade
		b.namespace(ns)
		b.restartInMode()
		b.live(configmaps, ns, "app", "applied anew", func(u *unstructured.Unstructured) bool { return data(u, "v") == "1" })
		b.applied(o)
		if second := b.room.target(); second == first || second == "" {
			t.Errorf("the hub takes %q for the target, which was %q", second, first)
		}
		b.room.mu.Lock()
		resets := b.room.resets
		b.room.mu.Unlock()
		if resets == 0 {
			t.Error("what the old cluster said still counts")
		}
		// Nothing that is meant for the one is pruned on the other.
		b.apply("ha06", ns, configMap(ns, "next", "v", "2"))
		b.gone(configmaps, ns, "app")
		after, err := old.Dynamic().Resource(configmaps).Namespace(ns).Get(b.ctx, "app", metav1.GetOptions{})
		if err != nil || after.GetUID() != before.GetUID() || after.GetResourceVersion() != before.GetResourceVersion() {
			t.Errorf("the old cluster's object is %v, %v", after, err)
		}
	})
}

// target is what the hub takes for the identity of the Cluster.
func (r *room) target() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cluster.Status.ClusterUID
}
