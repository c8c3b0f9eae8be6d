// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

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
