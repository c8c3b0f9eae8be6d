// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kumodo.io/convoy/pkg/health"
	"kumodo.io/convoy/pkg/tunnel"
)

func failedBy(part string) func(tunnel.Report) bool {
	return func(r tunnel.Report) bool {
		return r.Settled && r.Applied.Status == tunnel.False && r.Applied.Reason == "HookFailed" && strings.Contains(r.Applied.Message, part)
	}
}

func TestObjectsOfHooksGoAsTheirPolicySays(t *testing.T) {
	inModes(t, testObjectsOfHooksGoAsTheirPolicySays)
}

func testObjectsOfHooksGoAsTheirPolicySays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("policies")
	account := "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: worker, " +
		hookOf("PreSync", "sync-wave", "-1", "hook-delete-policy", "HookSucceeded,BeforeHookCreation") + "}\n---\n"
	render := func(value string) string {
		return configMap(ns, "main", "k", value) + account +
			strings.Replace(idle("work", hookOf("PreSync")), "metadata: {name: work,", "metadata: {name: work, finalizers: [convoy.test/slow],", 1) +
			strings.Replace(hookMap("data", hookOf("PreSync")), "annotations: {", `annotations: {helm.sh/resource-policy: keep, `, 1)
	}
	accounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	first := b.accept(b.order("policies", ns, render("v1"), withHooks))
	work := b.appears(jobs, ns, "work")
	b.get(accounts, ns, "worker") // until the whole phase has succeeded
	kept := b.get(configmaps, ns, "data").GetUID()
	b.endJob(ns, "work", true)
	b.applied(first)
	b.gone(accounts, ns, "worker")

	// What an earlier run left is waited for until it is really gone.
	second := b.accept(b.order("policies", ns, render("v2"), withHooks))
	b.report("uid-policies", "waiting for the Job of the earlier run", func(r tunnel.Report) bool {
		return r.Sequence == second.Sequence && strings.Contains(r.Applied.Message, "batch/Job policies/work of an earlier run to be gone, held by finalizer convoy.test/slow")
	})
	if uid := b.get(jobs, ns, "work").GetUID(); uid != work.GetUID() {
		t.Error("another was made beside it")
	}
	b.edit(jobs, ns, "work", "somebody", `{"metadata":{"finalizers":null}}`)
	b.live(jobs, ns, "work", "made anew", func(u *unstructured.Unstructured) bool { return u.GetUID() != work.GetUID() })
	b.endJob(ns, "work", true)
	b.applied(second)
	if uid := b.get(configmaps, ns, "data").GetUID(); uid != kept {
		t.Error("what is kept was made anew")
	}

	// One that is there by somebody else's hand is not touched.
	foreign := idle("theirs", "labels: {a: b}")
	if _, err := b.plane.KubectlInput(b.ctx, foreign, "create", "-n", ns, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	b.accept(b.order("policies", ns, configMap(ns, "main", "k", "v3")+job("theirs", hookOf("PreSync")), withHooks))
	r := b.report("uid-policies", "refused", func(r tunnel.Report) bool {
		return r.Settled && r.Applied.Reason == "OwnedByOther" || r.Applied.Reason == "DryRunFailed"
	})
	if !strings.Contains(r.Applied.Message, "no hook of this Release made") {
		t.Errorf("applied is %+v", r.Applied)
	}
	if data(b.get(configmaps, ns, "main"), "k") != "v2" {
		t.Error("the render was applied")
	}
	b.edit(jobs, ns, "work", "somebody", `{"metadata":{"finalizers":null}}`)

	// Nobody's object that is no work is not taken over either, but by a hook that is
	// kept: where it is, but for what others say.
	if _, err := b.plane.KubectlInput(b.ctx, hookMap("shared", "labels: {a: b}"), "apply", "--server-side", "-n", ns, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	uid := b.get(configmaps, ns, "shared").GetUID()
	shared := func(value string) string {
		kept := strings.Replace(hookOf("PreSync"), "annotations: {", "annotations: {helm.sh/resource-policy: keep, ", 1)
		return configMap(ns, "main", "k", "v4") + strings.Replace(hookMap("shared", kept), "{k: v}", value, 1)
	}
	b.accept(b.order("policies", ns, shared("{k: other}"), withHooks))
	b.report("uid-policies", "in conflict", func(r tunnel.Report) bool {
		return r.Settled && r.Applied.Reason == "Conflict" && strings.Contains(r.Applied.Message, `ConfigMap policies/shared: data.k managed by "kubectl"`)
	})
	b.apply("policies", ns, shared("{k: v}"), withHooks)
	if got := b.get(configmaps, ns, "shared"); got.GetUID() != uid || got.GetAnnotations()["convoy.kumodo.io/hook-run"] == "" {
		t.Errorf("it was %s, and is %s", uid, got.GetUID())
	}
}

func TestAHookThatHasNotEndedAtItsDeadlineHasFailedAndIsStopped(t *testing.T) {
	inModes(t, testAHookThatHasNotEndedAtItsDeadlineHasFailedAndIsStopped)
}

func testAHookThatHasNotEndedAtItsDeadlineHasFailedAndIsStopped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("deadline")
	o := b.accept(b.order("deadline", ns, configMap(ns, "main", "k", "v")+
		idle("endless", hookOf("PreSync", "hook-timeout", "2")), withHooks))
	r := b.report(o.Release.UID, "hook failed by its deadline", failedBy("batch/Job deadline/endless failed: DeadlinePassed: after 2s"))
	b.wantRuns(r, "PreSync Job/deadline/endless Failed")
	b.absent(configmaps, ns, "main")
	b.gone(jobs, ns, "endless")
}

func TestPodsAndCustomKindsAreHooks(t *testing.T) {
	inModes(t, testPodsAndCustomKindsAreHooks)
}

const hookKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tasks.MODE.hooks.test}
spec:
  group: MODE.hooks.test
  names: {kind: Task, plural: tasks}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
`

func testPodsAndCustomKindsAreHooks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("kinds")
	group := strings.ToLower(b.mode) + ".hooks.test"
	tasks := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "tasks"}
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: once, " + hookOf("PreSync", "sync-wave", "-1") +
		"}\nspec: {restartPolicy: Never, nodeSelector: {nowhere: \"true\"}, containers: [{name: c, image: \"example/once:1\"}]}\n---\n"
	task := "apiVersion: " + group + "/v1\nkind: Task\nmetadata: {name: task, " + hookOf("PreSync") + "}\nspec: {a: b}\n---\n"
	// Without a rule a custom resource whose status says nothing is taken for healthy.
	rule := b.rules(health.Rule{
		Set: "tasks", Group: group, Kind: "Task", Healthy: `has(object.status) && object.status.done`,
		Degraded: `has(object.status) && !object.status.done`, Message: `has(object.status) ? object.status.why : "not begun"`,
	})
	o := b.accept(b.order("kinds", ns, configMap(ns, "main", "k", "v")+strings.ReplaceAll(hookKind, "MODE.hooks.test", group)+pod+task, rule, withHooks))
	b.appears(pods, ns, "once")
	b.report(o.Release.UID, "waiting for the Pod", func(r tunnel.Report) bool { return strings.Contains(r.Applied.Message, "PreSync hook Pod kinds/once") })
	b.status(pods, ns, "once", `{"status":{"phase":"Succeeded"}}`)
	// Its kind comes by the same render, and nothing else of it does before.
	b.appears(tasks, ns, "task")
	b.absent(configmaps, ns, "main")
	b.report(o.Release.UID, "waiting for the task", func(r tunnel.Report) bool { return strings.Contains(r.Applied.Message, "Task kinds/task") })
	b.status(tasks, ns, "task", `{"status":{"done":true,"why":""}}`)
	b.wantRuns(b.applied(o), "PreSync Pod/kinds/once Succeeded", "PreSync Task/kinds/task Succeeded")
	ill := b.accept(b.order("kinds", ns, configMap(ns, "main", "k", "v1")+strings.ReplaceAll(hookKind, "MODE.hooks.test", group)+strings.Replace(task, "name: task", "name: ill", 1), rule, withHooks))
	b.appears(tasks, ns, "ill")
	b.status(tasks, ns, "ill", `{"status":{"done":false,"why":"out of paper"}}`)
	b.report(ill.Release.UID, "hook failed", failedBy("Task kinds/ill failed: out of paper"))

	failing := strings.Replace(pod, "once", "twice", 1)
	next := b.accept(b.order("kinds", ns, configMap(ns, "main", "k", "v2")+strings.ReplaceAll(hookKind, "MODE.hooks.test", group)+failing, withHooks))
	b.appears(pods, ns, "twice")
	b.status(pods, ns, "twice", `{"status":{"phase":"Failed","reason":"Evicted","message":"the node is full"}}`)
	b.report(next.Release.UID, "hook failed", failedBy("Pod kinds/twice failed: Evicted: the node is full"))
}

// status writes the status of an object, as its controller would.
func (b *bench) status(gvr schema.GroupVersionResource, ns, name, patch string) {
	b.t.Helper()
	_, err := b.plane.Dynamic().Resource(gvr).Namespace(ns).Patch(b.ctx, name, mergePatch, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestAnObjectThatBecomesAHookIsLetGoAndOneThatWasOneIsAppliedAgain(t *testing.T) {
	inModes(t, testAnObjectThatBecomesAHookIsLetGoAndOneThatWasOneIsAppliedAgain)
}

func testAnObjectThatBecomesAHookIsLetGoAndOneThatWasOneIsAppliedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("becomes")
	main := configMap(ns, "main", "k", "v")
	_, r := b.apply("becomes", ns, main+job("work", "labels: {a: b}")+hookMap("rare", hookOf("PreInstall")))
	if len(r.Inventory) != 3 {
		t.Errorf("the inventory has %d", len(r.Inventory))
	}
	was, rare := b.get(jobs, ns, "work").GetUID(), b.get(configmaps, ns, "rare").GetUID()
	// One runs now, and is made anew for that; one does not run in an upgrade.
	_, r = b.apply("becomes", ns, main+job("work", hookOf("PreSync"))+hookMap("rare", hookOf("PreInstall")), withHooks)
	if len(r.Inventory) != 1 {
		t.Errorf("the inventory has %d", len(r.Inventory))
	}
	b.wantRuns(r, "PreSync Job/becomes/work Succeeded")
	if uid := b.get(jobs, ns, "work").GetUID(); uid == was {
		t.Error("it did not run")
	}
	if uid := b.get(configmaps, ns, "rare").GetUID(); uid != rare {
		t.Error("it was pruned or made anew")
	}
	_, r = b.apply("becomes", ns, main+hookMap("rare", "labels: {a: b}"), withHooks)
	if len(r.Inventory) != 2 {
		t.Errorf("the inventory has %d", len(r.Inventory))
	}
	if uid := b.get(configmaps, ns, "rare").GetUID(); uid != rare {
		t.Error("it was made anew")
	}
	// A render of hooks alone would prune all: it is refused as an empty one.
	b.accept(b.order("becomes", ns, hookMap("rare", hookOf("PreSync")), withHooks))
	b.report("uid-becomes", "refused", func(r tunnel.Report) bool { return r.Settled && r.Applied.Reason == "EmptyRender" })
	b.get(configmaps, ns, "main")
}

func TestHooksOfAnOrderWithoutTheFeatureAreOrdinaryObjects(t *testing.T) {
	inModes(t, testHooksOfAnOrderWithoutTheFeatureAreOrdinaryObjects)
}

func testHooksOfAnOrderWithoutTheFeatureAreOrdinaryObjects(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("ordinary")
	_, r := b.apply("ordinary", ns, configMap(ns, "main", "k", "v")+hookMap("hook", hookOf("PreSync,PostDelete")))
	if len(r.Inventory) != 2 || len(r.Hooks) != 0 {
		t.Errorf("the inventory has %d, there are %d runs", len(r.Inventory), len(r.Hooks))
	}
}
