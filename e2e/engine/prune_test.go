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

func TestWhatLeavesTheRenderIsPrunedOrListedAsOrphaned(t *testing.T) {
	inModes(t, testWhatLeavesTheRenderIsPrunedOrListedAsOrphaned)
}

func testWhatLeavesTheRenderIsPrunedOrListedAsOrphaned(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("prune")
	b.apply("prune", ns, configMap(ns, "one", "k", "v")+configMap(ns, "two", "k", "v")+configMap(ns, "three", "k", "v"))
	_, r := b.apply("prune", ns, configMap(ns, "one", "k", "v")+configMap(ns, "two", "k", "v"), func(o *tunnel.Order) { o.Policy.PruneOrphaned = false })
	if r.Counts.Orphaned != 1 || len(r.Exceptions) != 1 || r.Exceptions[0].Reason != "Orphaned" {
		t.Errorf("the report has %+v %+v", r.Counts, r.Exceptions)
	}
	b.get(configmaps, ns, "three")
	b.apply("prune", ns, configMap(ns, "one", "k", "v"))
	b.gone(configmaps, ns, "two")
	b.gone(configmaps, ns, "three")
	b.get(configmaps, ns, "one")
}

func TestAnObjectWithAnotherUIDIsNotPruned(t *testing.T) {
	inModes(t, testAnObjectWithAnotherUIDIsNotPruned)
}

func testAnObjectWithAnotherUIDIsNotPruned(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("prune-uid")
	manual := func(o *tunnel.Order) { o.Policy.Automatic = false }
	b.apply("prune-uid", ns, configMap(ns, "one", "k", "v")+configMap(ns, "two", "k", "v"), manual)
	client := b.plane.Dynamic().Resource(configmaps).Namespace(ns)
	old := b.get(configmaps, ns, "two")
	if err := client.Delete(b.ctx, "two", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// As a restore from a backup would: with all marks of ours.
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "two"}, "data": map[string]any{"k": "precious"},
	}}
	made.SetLabels(old.GetLabels())
	made.SetAnnotations(old.GetAnnotations())
	if _, err := client.Create(b.ctx, made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.accept(b.order("prune-uid", ns, configMap(ns, "one", "k", "v"), manual))
	b.report("uid-prune-uid", "pruned", func(r tunnel.Report) bool { return r.Settled && r.Counts.Total == 1 })
	if got := b.get(configmaps, ns, "two"); data(got, "k") != "precious" || got.GetDeletionTimestamp() != nil {
		t.Error("somebody's object was pruned")
	}
}

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
	b.apply("pr05", ns, boat("ours-too"))
	b.gone(boats, ns, "ours")
	b.get(boats, ns, "users")
	if got := b.get(crds, "", "boats.pr05.example.test"); got.GetAnnotations()["convoy.kumodo.io/owner"] != "" {
		t.Error("the definition that was kept still carries our mark")
	}
	if err := b.plane.Dynamic().Resource(crds).Delete(b.ctx, "boats.pr05.example.test", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.gone(crds, "", "boats.pr05.example.test")
	b.apply("pr05", ns, configMap(ns, "last", "k", "v"))
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
	b.applied(o)
	b.gone(namespaces, "", "pr08-a")
}

func TestARemoveOrderDeletesOnlyTheInventoryAndAReleaseOrderNothing(t *testing.T) {
	inModes(t, testARemoveOrderDeletesOnlyTheInventoryAndAReleaseOrderNothing)
}

func testARemoveOrderDeletesOnlyTheInventoryAndAReleaseOrderNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("last-order")
	b.apply("removed", ns, configMap(ns, "r-one", "k", "v")+configMap(ns, "r-two", "k", "v"))
	b.apply("released", ns, configMap(ns, "l-one", "k", "v"))
	b.accept(b.bare("removed", tunnel.VerbRemove))
	r := b.report("uid-removed", "removed", func(r tunnel.Report) bool { return r.Done && r.Settled })
	b.gone(configmaps, ns, "r-one")
	b.gone(configmaps, ns, "r-two")
	b.accept(b.bare("released", tunnel.VerbRelease))
	l := b.report("uid-released", "released", func(r tunnel.Report) bool { return r.Done && r.Settled })
	got := b.get(configmaps, ns, "l-one")
	if got.GetLabels()["convoy.kumodo.io/managed"] != "" || got.GetAnnotations()["convoy.kumodo.io/owner"] != "" || data(got, "k") != "v" {
		t.Errorf("the released object is %v", got.Object)
	}
	b.acknowledged(r, l)
	// Another Release may adopt what was released.
	b.apply("next", ns, configMap(ns, "l-one", "k", "v2"))
}

func TestAReleaseMadeAnewUnderItsNameTakesTheObjectsOver(t *testing.T) {
	inModes(t, testAReleaseMadeAnewUnderItsNameTakesTheObjectsOver)
}

func testAReleaseMadeAnewUnderItsNameTakesTheObjectsOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("anew")
	b.apply("anew", ns, configMap(ns, "one", "k", "v", "old", "v")+configMap(ns, "two", "k", "v"))
	uid := b.get(configmaps, ns, "one").GetUID()
	b.halt()
	b.start()
	second := func(o *tunnel.Order) { o.Release.UID = "uid-anew-second" }
	b.accept(b.bare("anew", tunnel.VerbRemove))
	b.apply("anew", ns, configMap(ns, "one", "k", "v2")+configMap(ns, "three", "k", "v"), second)
	b.report("uid-anew", "removed", func(r tunnel.Report) bool { return r.Done })
	b.gone(configmaps, ns, "two")
	got := b.get(configmaps, ns, "one")
	if got.GetUID() != uid || data(got, "k") != "v2" || data(got, "old") != "" || got.GetAnnotations()["convoy.kumodo.io/owner"] != hubID+"/uid-anew-second" {
		t.Errorf("the object is %v", got.Object)
	}
}

func TestSS03ImmutableFieldsAreReportedOrReplaced(t *testing.T) {
	inModes(t, testSS03ImmutableFieldsAreReportedOrReplaced)
}

func testSS03ImmutableFieldsAreReportedOrReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("ss03")
	frozen := func(value, free string) string {
		return `
apiVersion: v1
kind: ConfigMap
metadata: {name: frozen}
immutable: true
data: {k: ` + value + `}
---
apiVersion: v1
kind: Secret
metadata: {name: typed}
type: ` + map[string]string{"one": "Opaque", "two": "example.test/other"}[value] + `
data: {k: c3dvcmRmaXNo}
---
` + configMap(ns, "free", "k", free)
	}
	b.apply("ss03", ns, frozen("one", "one"))
	uid := b.get(configmaps, ns, "frozen").GetUID()
	o := b.accept(b.order("ss03", ns, frozen("two", "two")))
	r := b.settled(o)
	if r.Applied.Reason != "DryRunFailed" || !strings.Contains(r.Applied.Message, "ConfigMap ss03/frozen") || !strings.Contains(r.Applied.Message, "Secret ss03/typed") {
		t.Errorf("applied is %+v", r.Applied)
	}
	for _, e := range r.Exceptions {
		if e.Reason != "Immutable" || strings.Contains(e.Message, "c3dvcmRmaXNo") {
			t.Errorf("exception %+v", e)
		}
	}
	if data(b.get(configmaps, ns, "free"), "k") != "one" {
		t.Error("an object of a rejected render was applied")
	}
	b.apply("ss03", ns, frozen("one", "one"))
	b.apply("ss03", ns, frozen("two", "two"), func(o *tunnel.Order) { o.Policy.Replace = true })
	if got := b.get(configmaps, ns, "frozen"); got.GetUID() == uid || data(got, "k") != "two" {
		t.Errorf("not replaced: %v", got.Object)
	}
}

func TestAnObjectThatIsAnnotatedToBeKeptIsNotReplaced(t *testing.T) {
	inModes(t, testAnObjectThatIsAnnotatedToBeKeptIsNotReplaced)
}

func testAnObjectThatIsAnnotatedToBeKeptIsNotReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("keptanew")
	frozen := func(name, annotations, value string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", annotations: {" + annotations + "}}\nimmutable: true\ndata: {k: " + value + "}\n---\n"
	}
	replace := func(o *tunnel.Order) { o.Policy.Replace = true }
	const helm, prune, argo = `helm.sh/resource-policy: keep`, `convoy.kumodo.io/prune: "false"`, `argocd.argoproj.io/sync-options: "Prune=false"`
	for name, c := range map[string]struct{ before, after, live, says string }{
		"policy": {before: helm, after: helm, says: "helm.sh/resource-policy"},
		"prune":  {before: prune, after: prune, says: "convoy.kumodo.io/prune"},
		"argo":   {before: argo, after: argo, says: "sync-options"},
		"taken":  {before: helm, says: "helm.sh/resource-policy"},
		"given":  {after: helm, says: "helm.sh/resource-policy"},
		"live":   {live: `{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`, says: "helm.sh/resource-policy"},
	} {
		release := "keptanew-" + name
		b.apply(release, ns, frozen(name, c.before, "one"), replace)
		if c.live != "" {
			b.edit(configmaps, ns, name, "owner", c.live)
		}
		uid := b.get(configmaps, ns, name).GetUID()
		r := b.settled(b.accept(b.order(release, ns, frozen(name, c.after, "two"), replace)))
		if len(r.Exceptions) != 1 || r.Exceptions[0].Reason != "Immutable" || !strings.Contains(r.Exceptions[0].Message, c.says) ||
			!strings.Contains(r.Exceptions[0].Message, "keeps it from being deleted") {
			t.Errorf("%s: exceptions are %+v", name, r.Exceptions)
		}
		if got := b.get(configmaps, ns, name); got.GetUID() != uid || data(got, "k") != "one" {
			t.Errorf("%s: replaced: %v", name, got.Object)
		}
	}
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
	b.apply("pr01", ns, v1)
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
	t.Logf("applied: %+v", r.Applied)
}

func TestAClaimThatLeavesTheRenderKeepsItsData(t *testing.T) {
	inModes(t, testAClaimThatLeavesTheRenderKeepsItsData)
}

func testAClaimThatLeavesTheRenderKeepsItsData(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("claim")
	b.apply("claim", ns, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: `+ns+`}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
`+configMap(ns, "settings", "k", "v"))
	b.apply("claim", ns, configMap(ns, "settings", "k", "v"))
	claim := b.get(claims, ns, "data")
	if claim.GetDeletionTimestamp() != nil || claim.GetAnnotations()["convoy.kumodo.io/owner"] != "" {
		t.Errorf("the claim is deleted at %v with annotations %v", claim.GetDeletionTimestamp(), claim.GetAnnotations())
	}
}

func TestANamespaceThatLeavesTheRenderIsKeptWhileOthersHaveObjectsInIt(t *testing.T) {
	inModes(t, testANamespaceThatLeavesTheRenderIsKeptWhileOthersHaveObjectsInIt)
}

func testANamespaceThatLeavesTheRenderIsKeptWhileOthersHaveObjectsInIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("census")
	with := func(namespace string) string {
		return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}\n---\n" + configMap(namespace, "ours", "k", "v") + "---\n" + configMap(ns, "stays", "k", "v")
	}
	for _, namespace := range []string{"census-shared", "census-alone"} {
		release := "rel-" + namespace
		b.apply(release, ns, strings.ReplaceAll(with(namespace), "stays", release))
	}
	theirs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "theirs", "namespace": "census-shared"},
	}}
	if _, err := b.plane.Dynamic().Resource(secrets).Namespace("census-shared").Create(b.ctx, theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	kept := b.accept(b.order("rel-census-shared", ns, configMap(ns, "rel-census-shared", "k", "v")))
	b.report("uid-rel-census-shared", "tells what it kept", func(r tunnel.Report) bool {
		return r.Sequence == kept.Sequence && r.Settled && r.Applied.Status == tunnel.True &&
			strings.Contains(r.Applied.Message, "Namespace census-shared") && strings.Contains(r.Applied.Message, "Secret census-shared/theirs")
	})
	b.gone(configmaps, "census-shared", "ours")
	b.get(secrets, "census-shared", "theirs")
	shared := b.get(namespaces, "", "census-shared")
	if shared.GetDeletionTimestamp() != nil || shared.GetAnnotations()["convoy.kumodo.io/owner"] != "" {
		t.Errorf("the namespace is deleted at %v, with annotations %v", shared.GetDeletionTimestamp(), shared.GetAnnotations())
	}

	b.applied(b.accept(b.order("rel-census-alone", ns, configMap(ns, "rel-census-alone", "k", "v"))))
	b.gone(namespaces, "", "census-alone")
}
