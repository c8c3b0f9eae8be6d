// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kumodo.io/convoy/pkg/tunnel"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func healedTo(value string) func(*unstructured.Unstructured) bool {
	return func(u *unstructured.Unstructured) bool { return data(u, "k") == value }
}

func definition(group string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.` + group + `}
spec:
  group: ` + group + `
  names: {kind: Boat, plural: boats}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
`
}

func TestKindsThatAreKeptGoWhereThePolicySaysSoUnlessOthersUseThem(t *testing.T) {
	inModes(t, testKindsThatAreKeptGoWhereThePolicySaysSoUnlessOthersUseThem)
}

func testKindsThatAreKeptGoWhereThePolicySaysSoUnlessOthersUseThem(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("allowed")
	b.namespace("allowed-empty")
	b.namespace("allowed-used")
	allowed := func(o *tunnel.Order) {
		o.Policy.Allowed = []string{"Namespace", "CustomResourceDefinition", "PersistentVolumeClaim"}
	}
	stays := configMap(ns, "stays", "k", "v")
	b.apply("allowed", ns, stays+definition("allowed-a.example.test")+definition("allowed-b.example.test")+`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: allowed-empty}
---
apiVersion: v1
kind: Namespace
metadata: {name: allowed-used}
---
`)
	boats := schema.GroupVersionResource{Group: "allowed-b.example.test", Version: "v1", Resource: "boats"}
	theirs := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "allowed-b.example.test/v1", "kind": "Boat", "metadata": map[string]any{"name": "theirs"}}}
	if _, err := b.plane.Dynamic().Resource(boats).Namespace("default").Create(b.ctx, theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	note := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "theirs"}}}
	if _, err := b.plane.Dynamic().Resource(configmaps).Namespace("allowed-used").Create(b.ctx, note, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	o := b.accept(b.order("allowed", ns, stays, allowed))
	r := b.report("uid-allowed", "pruned", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Settled && r.Applied.Status == tunnel.True
	})
	for _, kept := range []string{
		"kept Namespace allowed-used: others have objects in it, as ConfigMap allowed-used/theirs",
		"kept apiextensions.k8s.io/CustomResourceDefinition boats.allowed-b.example.test: others have objects in it, as allowed-b.example.test/Boat default/theirs",
	} {
		if !strings.Contains(r.Applied.Message, kept) {
			t.Errorf("what was kept is not told: %+v, want %q", r.Applied, kept)
		}
	}
	b.gone(claims, ns, "data")
	b.gone(definitions, "", "boats.allowed-a.example.test")
	b.gone(namespaces, "", "allowed-empty")
	for _, kept := range []*unstructured.Unstructured{
		b.get(definitions, "", "boats.allowed-b.example.test"), b.get(namespaces, "", "allowed-used"), b.get(boats, "default", "theirs"),
	} {
		if kept.GetDeletionTimestamp() != nil || kept.GetAnnotations()["convoy.kumodo.io/owner"] != "" {
			t.Errorf("%s %s is deleted at %v, with annotations %v", kept.GetKind(), kept.GetName(), kept.GetDeletionTimestamp(), kept.GetAnnotations())
		}
	}
}

func TestANamespaceThatWasThereBeforeStaysWithItsReleaseGone(t *testing.T) {
	inModes(t, testANamespaceThatWasThereBeforeStaysWithItsReleaseGone)
}

func testANamespaceThatWasThereBeforeStaysWithItsReleaseGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("before")
	b.namespace("before-us")
	b.apply("before", ns, "apiVersion: v1\nkind: Namespace\nmetadata: {name: before-us}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: before-made}\n---\n"+configMap("before-us", "one", "k", "v"))
	b.accept(b.bare("before", tunnel.VerbRemove))
	b.report("uid-before", "removed", func(r tunnel.Report) bool { return r.Done })
	b.gone(configmaps, "before-us", "one")
	b.gone(namespaces, "", "before-made")
	if got := b.get(namespaces, "", "before-us"); got.GetDeletionTimestamp() != nil {
		t.Error("the namespace is being deleted")
	}
}

func TestPR03WhatIsAnnotatedToStayStaysWhereverTheAnnotationIs(t *testing.T) {
	inModes(t, testPR03WhatIsAnnotatedToStayStaysWhereverTheAnnotationIs)
}

func testPR03WhatIsAnnotatedToStayStaysWhereverTheAnnotationIs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("annotated")
	annotated := func(name, annotation string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", annotations: {" + annotation + "}}\ndata: {k: v}\n---\n"
	}
	manual := func(o *tunnel.Order) { o.Policy.Automatic = false }
	b.apply("annotated", ns, annotated("ours", `convoy.kumodo.io/prune: "false"`)+annotated("helms", "helm.sh/resource-policy: keep")+
		annotated("argos", "argocd.argoproj.io/sync-options: Prune=false")+annotated("stripped", "helm.sh/resource-policy: keep")+
		annotated("live", "a: b")+annotated("goes", "a: b")+configMap(ns, "stays", "k", "v"), manual)
	// One loses its annotation where it lives, another is given one there.
	b.edit(configmaps, ns, "stripped", "somebody", `{"metadata":{"annotations":{"helm.sh/resource-policy":null}}}`)
	b.edit(configmaps, ns, "live", "somebody", `{"metadata":{"annotations":{"convoy.kumodo.io/prune":"false"}}}`)
	b.report("uid-annotated", "the edit was seen", func(r tunnel.Report) bool { return r.Counts.Drifted == 1 })
	uids := map[string]string{}
	for _, name := range []string{"ours", "helms", "argos", "stripped", "live"} {
		uids[name] = string(b.get(configmaps, ns, name).GetUID())
	}
	_, r := b.apply("annotated", ns, configMap(ns, "stays", "k", "v"), manual)
	if n := strings.Count(r.Applied.Message, "kept ConfigMap annotated/"); n != 5 && !strings.HasSuffix(r.Applied.Message, fmt.Sprintf("(and %d more)", 5-n)) || n < 3 || r.Counts.Total != 1 {
		t.Errorf("what was kept is not told: %+v, %+v", r.Applied, r.Counts)
	}
	b.gone(configmaps, ns, "goes")
	for name, uid := range uids {
		if got := b.get(configmaps, ns, name); string(got.GetUID()) != uid || got.GetDeletionTimestamp() != nil || got.GetAnnotations()["convoy.kumodo.io/owner"] != "" {
			t.Errorf("%s is %v", name, got.Object)
		}
	}
	// Another Release adopts what was kept, without a conflict.
	b.apply("adopts", ns, annotated("ours", `convoy.kumodo.io/prune: "false"`))
	b.accept(b.bare("adopts", tunnel.VerbRemove))
	b.report("uid-adopts", "removed", func(r tunnel.Report) bool { return r.Done })
	if got := b.get(configmaps, ns, "ours"); string(got.GetUID()) != uids["ours"] || got.GetDeletionTimestamp() != nil {
		t.Errorf("gone with its Release: %v", got.Object)
	}
}

func TestDependentsGoTheWayThatThePolicySays(t *testing.T) {
	inModes(t, testDependentsGoTheWayThatThePolicySays)
}

func testDependentsGoTheWayThatThePolicySays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, policy := range []string{"Orphan", "Foreground", "Background"} {
		ns := b.namespace("propagate-" + strings.ToLower(policy))
		name := "rel-" + ns
		b.apply(name, ns, configMap(ns, "stays", "k", "v")+configMap(ns, "owner", "k", "v"))
		owner := b.get(configmaps, ns, "owner")
		child := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"name": "child", "ownerReferences": []any{map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": string(owner.GetUID()), "blockOwnerDeletion": true,
			}},
		}}}
		if _, err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Create(b.ctx, child, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		b.apply(name, ns, configMap(ns, "stays", "k", "v"), func(o *tunnel.Order) { o.Policy.Propagation = policy })
		b.gone(configmaps, ns, "owner")
		if policy != "Orphan" {
			b.gone(configmaps, ns, "child")
			continue
		}
		b.live(configmaps, ns, "child", "let go", func(u *unstructured.Unstructured) bool {
			return len(u.GetOwnerReferences()) == 0 && u.GetDeletionTimestamp() == nil
		})
	}
}
