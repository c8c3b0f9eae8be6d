// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/pkg/tunnel"
)

// TestAReleaseThatTheHubForgotPassesItsObjectsToItsNamesake: a Cluster was deleted
// on the hub with its Releases, or the hub restored from an older copy, and the
// Release made anew. Nothing is removed for that, and nothing belongs to a ghost.
func TestAReleaseThatTheHubForgotPassesItsObjectsToItsNamesake(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("forgotten")
	b.apply("forgotten", ns, configMap(ns, "one", "k", "v")+configMap(ns, "two", "k", "v")+configMap(ns, "left", "k", "v"))
	uid := b.get(configmaps, ns, "one").GetUID()

	second := func(o *tunnel.Order) { o.Release.UID = "uid-forgotten-second" }
	render := configMap(ns, "one", "k", "v2") + configMap(ns, "two", "k", "v")
	refused := b.accept(b.order("forgotten", ns, render, second))
	b.report("uid-forgotten-second", "does not take what the hub may still mean", func(r tunnel.Report) bool {
		return r.Sequence == refused.Sequence && r.Applied.Reason == "OwnedByOther"
	})
	b.runner.Head(tunnel.Head{}, map[string]int64{"uid-forgotten-second": refused.Sequence})
	b.apply("forgotten", ns, render, second)
	got := b.get(configmaps, ns, "one")
	if got.GetUID() != uid || data(got, "k") != "v2" || got.GetAnnotations()["convoy.kumodo.io/owner"] != hubID+"/uid-forgotten-second" {
		t.Errorf("the object is %v", got.Object)
	}

	// What the namesake drops stays dropped, after a restart too.
	b.apply("forgotten", ns, configMap(ns, "one", "k", "v3"), second)
	b.gone(configmaps, ns, "two")
	b.halt()
	b.start()
	b.apply("forgotten", ns, configMap(ns, "one", "k", "v4"), second)
	b.gone(configmaps, ns, "two")
	b.edit(configmaps, ns, "left", "someone", `{"data":{"k":"x"}}`)
	b.live(configmaps, ns, "left", "what nobody took is still kept", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v" })
}

// TestAMarkWithoutAnOwnerHoldsNothing: the agent's namespace was deleted, and all it
// knew with it, or the hub's etcd was lost and everything described again.
func TestAMarkWithoutAnOwnerHoldsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("ownerless")
	for name, owner := range map[string]string{"ghost": hubID + "/uid-of-nobody", "foreign": "fedcba9876543210/uid-of-nobody"} {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": name, "namespace": ns, "annotations": map[string]any{"convoy.kumodo.io/owner": owner}},
		}}
		if _, err := plane.Dynamic().Resource(configmaps).Namespace(ns).Apply(b.ctx, name, object, metav1.ApplyOptions{FieldManager: "convoy"}); err != nil {
			t.Fatal(err)
		}
	}
	early := b.accept(b.order("ownerless", ns, configMap(ns, "ghost", "k", "v")))
	b.report("uid-ownerless", "waits to hear what the hub has", func(r tunnel.Report) bool {
		return r.Sequence == early.Sequence && r.Applied.Reason == "OwnedByOther"
	})
	b.runner.Head(tunnel.Head{Shared: true}, map[string]int64{"uid-ownerless": early.Sequence})
	shared := b.accept(b.order("ownerless", ns, configMap(ns, "ghost", "k", "v")))
	b.report("uid-ownerless", "leaves what another Cluster of the hub may own", func(r tunnel.Report) bool {
		return r.Sequence == shared.Sequence && r.Applied.Reason == "OwnedByOther"
	})
	b.runner.Head(tunnel.Head{}, map[string]int64{"uid-ownerless": shared.Sequence})
	b.applied(shared)
	other := b.accept(b.order("ownerless", ns, configMap(ns, "ghost", "k", "v")+configMap(ns, "foreign", "k", "v")))
	b.report("uid-ownerless", "leaves what another hub owns", func(r tunnel.Report) bool {
		return r.Sequence == other.Sequence && r.Applied.Reason == "OwnedByOther"
	})
}
