// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
