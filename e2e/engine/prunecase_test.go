// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestPR05DefinitionsStayAndObjectsOfAKindThatIsGoneCountAsPruned(t *testing.T) {
	inModes(t, testPR05DefinitionsStayAndObjectsOfAKindThatIsGoneCountAsPruned)
}

func testPR05DefinitionsStayAndObjectsOfAKindThatIsGoneCountAsPruned(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("pr05")
	crd := `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.pr05.example.test}
spec:
  group: pr05.example.test
  names: {kind: Boat, plural: boats}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
`
	boat := func(name string) string {
		return "apiVersion: pr05.example.test/v1\nkind: Boat\nmetadata: {name: " + name + "}\n---\n"
	}
	boats := schema.GroupVersionResource{Group: "pr05.example.test", Version: "v1", Resource: "boats"}
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	b.apply("pr05", ns, crd+boat("ours")+boat("ours-too"))
	user := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "pr05.example.test/v1", "kind": "Boat", "metadata": map[string]any{"name": "users"}}}
	if _, err := b.plane.Dynamic().Resource(boats).Namespace(ns).Create(b.ctx, user, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, r := b.apply("pr05", ns, boat("ours-too"))
	if !strings.Contains(r.Applied.Message, "kept apiextensions.k8s.io/CustomResourceDefinition boats.pr05.example.test") {
		t.Errorf("what was kept is not told: %+v", r.Applied)
	}
	b.gone(boats, ns, "ours")
	for _, name := range []string{"users", "ours-too"} {
		if got := b.get(boats, ns, name); got.GetDeletionTimestamp() != nil {
			t.Errorf("Boat %s is being deleted", name)
		}
	}
	if got := b.get(crds, "", "boats.pr05.example.test"); got.GetAnnotations()["convoy.kumodo.io/owner"] != "" {
		t.Error("the definition that was kept still carries our mark")
	}
	if err := b.plane.Dynamic().Resource(crds).Delete(b.ctx, "boats.pr05.example.test", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.gone(crds, "", "boats.pr05.example.test")
	_, r = b.apply("pr05", ns, configMap(ns, "last", "k", "v"))
	if r.Counts.Total != 1 || len(r.Exceptions) != 0 || len(b.inventory("uid-pr05")) != 1 || strings.Contains(mustText(t, r), "no match") {
		t.Errorf("the report is %+v", r)
	}
}

func TestPR08PruneGoesAgainstTheWavesAndNamesAFinalizer(t *testing.T) {
	inModes(t, testPR08PruneGoesAgainstTheWavesAndNamesAFinalizer)
}

func testPR08PruneGoesAgainstTheWavesAndNamesAFinalizer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("pr08")
	b.apply("pr08", ns, `
apiVersion: v1
kind: Namespace
metadata: {name: pr08-a, annotations: {convoy.kumodo.io/sync-wave: "0"}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: middle
  namespace: pr08-a
  annotations: {convoy.kumodo.io/sync-wave: "1"}
  finalizers: [pr08.example.test/hold]
data: {k: v}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: last, namespace: pr08-a, annotations: {convoy.kumodo.io/sync-wave: "2"}}
data: {k: v}
`)
	o := b.accept(b.order("pr08", ns, configMap(ns, "fresh", "k", "v")))
	b.report("uid-pr08", "waits for the finalizer", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && strings.Contains(r.Applied.Message, "ConfigMap pr08-a/middle") && strings.Contains(r.Applied.Message, "pr08.example.test/hold")
	})
	b.get(configmaps, ns, "fresh")
	held := b.report("uid-pr08", "an exception of what the finalizer holds", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && len(r.Exceptions) == 1 && strings.Contains(r.Exceptions[0].Message, "pr08.example.test/hold")
	})
	if e := held.Exceptions[0]; e.Reason != "Terminating" || e.Name != "middle" || e.Since.IsZero() {
		t.Errorf("exception %+v", e)
	}
	if held.InSync.Status == tunnel.True || strings.Contains(held.InSync.Message, "is not applied") || !strings.Contains(held.InSync.Message, "deleted") {
		t.Errorf("in sync is %+v, though all objects of the render are applied", held.InSync)
	}
	b.report("uid-pr08", "an inventory that has it Terminating", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && slices.ContainsFunc(r.Inventory, func(e tunnel.InventoryEntry) bool { return e.Name == "middle" && e.Health == "Terminating" })
	})
	b.gone(configmaps, "pr08-a", "last")
	if b.get(configmaps, "pr08-a", "middle").GetDeletionTimestamp() == nil {
		t.Error("the object with the finalizer is not being deleted")
	}
	if b.get(namespaces, "", "pr08-a").GetDeletionTimestamp() != nil {
		t.Error("the namespace is being deleted before its wave")
	}
	b.edit(configmaps, "pr08-a", "middle", "owner", `{"metadata":{"finalizers":null}}`)
	if r := b.applied(o); len(r.Exceptions) != 0 {
		t.Errorf("something is left in the status: %+v", r.Exceptions)
	}
	b.gone(namespaces, "", "pr08-a")
}

func TestPR01TheSameObjectUnderAnotherVersionIsNotPruned(t *testing.T) {
	inModes(t, testPR01TheSameObjectUnderAnotherVersionIsNotPruned)
}

func testPR01TheSameObjectUnderAnotherVersionIsNotPruned(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("pr01")
	v1 := `
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 4
  targetCPUUtilizationPercentage: 70
---
apiVersion: v1
kind: Event
metadata: {name: note}
involvedObject: {kind: Namespace, name: pr01, namespace: pr01}
reason: Noted
type: Normal
message: hello
`
	v2 := `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 5
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}]
---
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: note, labels: {rev: "2"}}
`
	hpas := schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
	events := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	first := b.accept(b.order("pr01", ns, v1))
	// HL-24: what version v1 has in an annotation alone is told as that of v2 is.
	b.report(first.Release.UID, "applied and in sync, with the autoscaler that scales nothing named", func(r tunnel.Report) bool {
		return r.Sequence == first.Sequence && r.Applied.Status == tunnel.True && r.InSync.Status == tunnel.True && r.Healthy.Status == tunnel.False &&
			slices.ContainsFunc(r.Exceptions, func(e tunnel.Exception) bool {
				return e.Kind == "HorizontalPodAutoscaler" && strings.HasPrefix(e.Message, "FailedGetScale")
			})
	})
	hpa, event := b.get(hpas, ns, "web").GetUID(), b.get(events, ns, "note").GetUID()
	o := b.accept(b.order("pr01", ns, v2))
	r := b.settled(o)
	if got := b.get(events, ns, "note"); got.GetUID() != event || got.GetDeletionTimestamp() != nil {
		t.Error("the event was pruned")
	}
	got := b.get(hpas, ns, "web")
	if got.GetUID() != hpa {
		t.Error("the autoscaler was made anew")
	}
	if most, _, err := unstructured.NestedInt64(got.Object, "spec", "maxReplicas"); err != nil || most != 5 {
		t.Errorf("maxReplicas is %d: %v", most, err)
	}
	if r.Applied.Status != tunnel.True {
		t.Errorf("applied is %+v", r.Applied)
	}
}
