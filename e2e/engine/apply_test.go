// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestARenderIsAppliedMarkedAndReported(t *testing.T) {
	inModes(t, testARenderIsAppliedMarkedAndReported)
}

func testARenderIsAppliedMarkedAndReported(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("apply-basic")
	_, r := b.apply("basic", ns, configMap(ns, "one", "k", "v")+`
apiVersion: v1
kind: Secret
metadata: {name: hidden}
stringData: {password: swordfish}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: "example/app:1"}]
`)
	got := b.get(configmaps, ns, "one")
	if data(got, "k") != "v" {
		t.Errorf("data.k is %q", data(got, "k"))
	}
	if l := got.GetLabels()["convoy.kumodo.io/managed"]; l != hubID {
		t.Errorf("label managed is %q", l)
	}
	if a := got.GetAnnotations()["convoy.kumodo.io/owner"]; a != hubID+"/uid-basic" {
		t.Errorf("owner is %q", a)
	}
	if s := b.get(secrets, ns, "hidden"); data(s, "password") != "c3dvcmRmaXNo" {
		t.Errorf("the sealed value did not arrive: %v", s.Object["data"])
	}
	if r.Counts.Total != 3 || r.Counts.Applied != 3 || r.Counts.Healthy != 3 {
		t.Errorf("counts are %+v", r.Counts)
	}
	if len(r.Inventory) != 3 || r.Inventory[0].UID == "" {
		t.Errorf("inventory is %+v", r.Inventory)
	}
}

func TestTheOrdersNamespaceIsMadeAndNeverPruned(t *testing.T) {
	inModes(t, testTheOrdersNamespaceIsMadeAndNeverPruned)
}

func testTheOrdersNamespaceIsMadeAndNeverPruned(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o, _ := b.apply("makes-ns", "apply-made", configMap("apply-made", "one", "k", "v"))
	ns := b.get(namespaces, "", "apply-made")
	if ns.GetLabels()["convoy.kumodo.io/managed"] != "" {
		t.Errorf("the namespace carries our mark")
	}
	remove := b.bare("makes-ns", tunnel.VerbRemove)
	remove.Sequence = o.Sequence + 10
	b.accept(remove)
	b.report("uid-makes-ns", "done", func(r tunnel.Report) bool { return r.Done })
	b.gone(configmaps, "apply-made", "one")
	if got := b.get(namespaces, "", "apply-made"); got.GetDeletionTimestamp() != nil {
		t.Errorf("the namespace is being deleted")
	}
}

func TestAnEditIsHealedAndNamed(t *testing.T) { inModes(t, testAnEditIsHealedAndNamed) }

func testAnEditIsHealedAndNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("heal-edit")
	b.apply("heal-edit", ns, configMap(ns, "one", "k", "v"))
	b.edit(configmaps, ns, "one", "somebody", `{"data":{"k":"edited"}}`)
	b.live(configmaps, ns, "one", "healed", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v" })
	r := b.report("uid-heal-edit", "healed", func(r tunnel.Report) bool {
		return r.Operation != nil && r.Operation.Type == "Heal" && r.Settled && r.InSync.Status == tunnel.True
	})
	if want := `ConfigMap heal-edit/one: data.k changed by "somebody"`; r.Operation.Message != want {
		t.Errorf("the operation says %q, want %q", r.Operation.Message, want)
	}
}
