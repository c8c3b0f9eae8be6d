// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// TestAWorkloadIsNotDeletedByAnAnnotationThatMakesItAHook: whatever the phase and the
// policy, what was applied as an object lives on, cared for as before.
func TestAWorkloadIsNotDeletedByAnAnnotationThatMakesItAHook(t *testing.T) {
	inModes(t, testAWorkloadIsNotDeletedByAnAnnotationThatMakesItAHook)
}

func testAWorkloadIsNotDeletedByAnAnnotationThatMakesItAHook(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, annotations := range map[string]string{
		"before":   `convoy.kumodo.io/hook: PreSync, convoy.kumodo.io/hook-delete-policy: HookSucceeded`,
		"anew":     `convoy.kumodo.io/hook: "PreInstall,PreUpgrade"`,
		"after":    `convoy.kumodo.io/hook: PostSync, convoy.kumodo.io/hook-delete-policy: HookSucceeded`,
		"never":    `convoy.kumodo.io/hook: PreInstall`,
		"farewell": `convoy.kumodo.io/hook: PreDelete`,
	} {
		name := "turned-" + name
		ns := b.namespace(name)
		b.apply(name, ns, configMap(ns, "main", "k", "v")+turned("", "1"))
		was := b.get(deployments, ns, "web").GetUID()
		o := b.accept(b.order(name, ns, configMap(ns, "main", "k", "w")+turned(annotations, "1"), withHooks))
		r := b.report("uid-"+name, "refused", func(r tunnel.Report) bool {
			return r.Sequence == o.Sequence && r.Settled && r.Applied.Reason == v1alpha1.ReasonDryRunFailed
		})
		if !strings.Contains(r.Applied.Message, "Deployment "+ns+"/web") || len(r.Hooks) != 0 {
			t.Errorf("%s: %+v, hooks %v", name, r.Applied, r.Hooks)
		}
		if uid := b.get(deployments, ns, "web").GetUID(); uid != was {
			t.Errorf("%s: the workload was made anew", name)
		}
		if got := data(b.get(configmaps, ns, "main"), "k"); got != "v" {
			t.Errorf("%s: k is %q, and nothing was to be applied", name, got)
		}
	}
}

// TestWhatWasCalledAHookWhenItWasAppliedBecomesOne: a hub that did not know hooks has
// applied it as an object.
func TestWhatWasCalledAHookWhenItWasAppliedBecomesOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("turned-former")
	b.apply("turned-former", ns, configMap(ns, "main", "k", "v")+turned("helm.sh/hook: pre-upgrade", "1"))
	_, r := b.apply("turned-former", ns, configMap(ns, "main", "k", "v")+turned("convoy.kumodo.io/hook: PreUpgrade", "1"), withHooks)
	b.wantRuns(r, "PreSync Deployment/turned-former/web Succeeded")
}

// TestWhatBecomesOfAnObjectThatTurnsIntoAHook: Jobs, and Pods that end, are made anew when
// the hook runs; what may hold data is changed where it is, and so is what is annotated to
// be kept; a Pod that is started again for ever is a workload.
func TestWhatBecomesOfAnObjectThatTurnsIntoAHook(t *testing.T) {
	inModes(t, testWhatBecomesOfAnObjectThatTurnsIntoAHook)
}

func testWhatBecomesOfAnObjectThatTurnsIntoAHook(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("turned-kinds")
	documents := func(hook, keep, farewell string) string {
		return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: job, annotations: {%[1]s}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "example/app:1"}]}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim, annotations: {%[1]s}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kept, annotations: {%[2]s}}
data: {k: v}
---
apiVersion: batch/v1
kind: Job
metadata: {name: farewell, annotations: {%[3]s}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "example/app:1"}]}}}
---
`, hook, keep, farewell) + configMap(ns, "main", "k", "v")
	}
	b.apply("turned-kinds", ns, documents("", `helm.sh/resource-policy: keep`, ""))
	uids := func() map[string]types.UID {
		out := map[string]types.UID{}
		for name, gvr := range map[string]schema.GroupVersionResource{"job": jobs, "farewell": jobs, "claim": claims, "kept": configmaps, "main": configmaps} {
			out[name] = b.get(gvr, ns, name).GetUID()
		}
		return out
	}
	was := uids()
	const hook = `convoy.kumodo.io/hook: PostSync`
	_, r := b.apply("turned-kinds", ns, documents(hook, hook+`, helm.sh/resource-policy: keep`, "convoy.kumodo.io/hook: PreDelete"), withHooks)
	for name, uid := range uids() {
		if anew := uid != was[name]; anew != (name == "job") {
			t.Errorf("%s was made anew: %v", name, anew)
		}
	}
	after := []string{"PostSync ConfigMap/turned-kinds/kept Succeeded", "PostSync PersistentVolumeClaim/turned-kinds/claim Succeeded", "PostSync Job/turned-kinds/job Succeeded"}
	b.wantRuns(r, after...)
	if r.Counts.Total != 1 {
		t.Errorf("%d objects of the Release, want main alone", r.Counts.Total)
	}

	b.restart()
	remove := b.accept(b.bare("turned-kinds", tunnel.VerbRemove))
	r = b.report("uid-turned-kinds", "removed", func(r tunnel.Report) bool { return r.Sequence == remove.Sequence && r.Done })
	b.wantRuns(r, append(after, "PreDelete Job/turned-kinds/farewell Succeeded")...)
	b.gone(configmaps, ns, "main")
	for name, gvr := range map[string]schema.GroupVersionResource{"claim": claims, "kept": configmaps} {
		if b.get(gvr, ns, name).GetUID() != was[name] {
			t.Errorf("%s is not what it was", name)
		}
	}

	const pod = `apiVersion: v1
kind: Pod
metadata: {name: forever, annotations: {%s}}
spec: {containers: [{name: c, image: "example/app:1"}]}
---
`
	b.apply("turned-pod", ns, fmt.Sprintf(pod, ""))
	o := b.accept(b.order("turned-pod", ns, fmt.Sprintf(pod, hook)+configMap(ns, "other", "k", "v"), withHooks))
	refused := b.report("uid-turned-pod", "refused", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Settled && r.Applied.Reason == v1alpha1.ReasonDryRunFailed
	})
	if !strings.Contains(refused.Applied.Message, "Pod "+ns+"/forever") {
		t.Errorf("told is %+v", refused.Applied)
	}
}

func turned(annotations, version string) string {
	return `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {` + annotations + `}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: "example/app:` + version + `"}]
---
`
}
