// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/pkg/tunnel"
)

// ownNamespace is one that the render brings.
func ownNamespace(name string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n---\n"
}

// in puts an object into a namespace that is not the one of its Release.
func in(ns, object string) string {
	return strings.Replace(object, "metadata: {", "metadata: {namespace: "+ns+", ", 1)
}

func TestANamespaceThatARemovalDeletesStaysForTheHooksThatComeAfter(t *testing.T) {
	inModes(t, testANamespaceThatARemovalDeletesStaysForTheHooksThatComeAfter)
}

func testANamespaceThatARemovalDeletesStaysForTheHooksThatComeAfter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("hook-place")
	const own, other = "hook-place-own", "hook-place-other"
	o, _ := b.apply("hook-place", ns, ownNamespace(own)+ownNamespace(other)+configMap(own, "main", "k", "v")+configMap(other, "main", "k", "v")+
		in(own, idle("farewell", hookOf("PostDelete"))), withHooks)
	remove := b.accept(b.bare("hook-place", tunnel.VerbRemove))
	b.appears(jobs, own, "farewell")
	// All else is gone by then, but for the namespace that the hook is in.
	b.gone(configmaps, own, "main")
	b.gone(namespaces, "", other)
	if at := b.get(namespaces, "", own).GetDeletionTimestamp(); at != nil {
		t.Error("the namespace goes before the hook has run")
	}
	b.restartInMode() // in the middle of it
	b.report(o.Release.UID, "waiting for the hook", func(r tunnel.Report) bool {
		return r.Sequence == remove.Sequence && !r.Done && lastRun(r, "Job/"+own+"/farewell").State == "Running"
	})
	b.endJob(own, "farewell", true)
	r := b.report(o.Release.UID, "removed", func(r tunnel.Report) bool { return r.Done && r.Sequence == remove.Sequence })
	b.gone(namespaces, "", own)
	if strings.Contains(r.Applied.Message, "left") {
		t.Errorf("what went with the namespace is told as left: %+v", r.Applied)
	}
}

func TestANamespaceStaysForWhatHooksLeftInIt(t *testing.T) {
	inModes(t, testANamespaceStaysForWhatHooksLeftInIt)
}

func testANamespaceStaysForWhatHooksLeftInIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("hook-left")
	const own = "hook-left-own"
	render := func(more string) string {
		return ownNamespace(own) + configMap(own, "main", "k", "v") + in(own, hookMap("data", hookOf("PreSync"))) + in(own, job("ran", hookOf("PreSync"))) + more
	}
	b.apply("hook-left", ns, render(""), withHooks)
	before := b.get(configmaps, own, "data").GetUID()
	remove := b.accept(b.bare("hook-left", tunnel.VerbRemove))
	r := b.report(remove.Release.UID, "removed", func(r tunnel.Report) bool { return r.Done && r.Sequence == remove.Sequence })
	b.gone(configmaps, own, "main")
	b.gone(jobs, own, "ran")
	if b.get(configmaps, own, "data").GetUID() != before || b.get(namespaces, "", own).GetDeletionTimestamp() != nil {
		t.Error("what a hook made is gone")
	}
	if want := "kept Namespace " + own + ": it holds ConfigMap " + own + "/data, which a PreSync hook made"; !strings.Contains(r.Applied.Message, want) {
		t.Errorf("applied is %+v, want %q", r.Applied, want)
	}
}

func TestANamespaceThatLeavesTheRenderStaysForTheHooksOfIt(t *testing.T) {
	inModes(t, testANamespaceThatLeavesTheRenderStaysForTheHooksOfIt)
}

func testANamespaceThatLeavesTheRenderStaysForTheHooksOfIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("hook-stays")
	const own = "hook-stays-own"
	check := in(own, job("check", hookOf("PostSync")))
	b.apply("hook-stays", ns, ownNamespace(own)+configMap(own, "main", "k", "v")+configMap(ns, "main", "k", "v")+check, withHooks)
	_, r := b.apply("hook-stays", ns, configMap(ns, "main", "k", "v2")+check, withHooks)
	b.wantRuns(r, "PostSync Job/"+own+"/check Succeeded", "PostSync Job/"+own+"/check Succeeded")
	b.gone(configmaps, own, "main")
	if b.get(namespaces, "", own).GetDeletionTimestamp() != nil {
		t.Error("the namespace is gone")
	}
	if want := "kept Namespace " + own + ": hook Job/" + own + "/check is made in it"; !strings.Contains(r.Applied.Message, want) {
		t.Errorf("applied is %+v, want %q", r.Applied, want)
	}
	if err := b.plane.Dynamic().Resource(namespaces).Delete(b.ctx, own, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}
