// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"kumodo.io/convoy/pkg/engine"
	"kumodo.io/convoy/pkg/state"
	"kumodo.io/convoy/pkg/tunnel"
)

var (
	clusterroles = schema.GroupVersionResource{Group: groupRBAC, Version: "v1", Resource: "clusterroles"}
	roles        = schema.GroupVersionResource{Group: groupRBAC, Version: "v1", Resource: "roles"}
	bindings     = schema.GroupVersionResource{Group: groupRBAC, Version: "v1", Resource: "rolebindings"}
	policies     = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}
)

const groupRBAC = "rbac.authorization.k8s.io"

func TestSS28NamesOfAnyLettersAreAppliedHealedAndPruned(t *testing.T) {
	inModes(t, testSS28NamesOfAnyLettersAreAppliedHealedAndPruned)
}

func testSS28NamesOfAnyLettersAreAppliedHealedAndPruned(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-ss-28")
	const wide, bound = "system:ss28:My Role (ä)", "A&B?c=d#e"
	stays := "\n---\napiVersion: " + groupRBAC + "/v1\nkind: Role\nmetadata: {name: \"a:b..c\", namespace: " + ns + "}\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]\n"
	b.apply("ss28", ns, strings.ReplaceAll(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:ss28:My Role (ä)"}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "A&B?c=d#e", namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "a:b..c"}
subjects: [{kind: User, name: "jörg@example.test", apiGroup: rbac.authorization.k8s.io}]
`, "NS", ns)+stays)
	role := b.find(clusterroles, "", wide)
	binding := b.find(bindings, ns, bound)
	kept := b.find(roles, ns, "a:b..c")
	if _, err := b.plane.KubectlInput(b.ctx, `{"apiVersion":"`+groupRBAC+`/v1","kind":"ClusterRole","metadata":{"name":"`+wide+`"},"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`,
		"replace", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.plane.Kubectl(b.ctx, "delete", "rolebinding", "-n", ns, bound); err != nil {
		t.Fatal(err)
	}
	b.until("the role is as it was, and the binding made again", func() bool {
		nowRole, nowBinding := b.find(clusterroles, "", wide), b.find(bindings, ns, bound)
		if nowRole == nil || nowBinding == nil {
			return false
		}
		rules, _, err := unstructured.NestedSlice(nowRole.Object, "rules")
		return err == nil && len(rules) == 1 && strings.Contains(toJSON(t, rules), "pods") && nowRole.GetUID() == role.GetUID() && nowBinding.GetUID() != binding.GetUID()
	})
	b.apply("ss28", ns, stays)
	if b.find(clusterroles, "", wide) != nil || b.find(bindings, ns, bound) != nil {
		t.Error("what left the render is still there")
	}
	if now := b.find(roles, ns, "a:b..c"); now == nil || now.GetUID() != kept.GetUID() {
		t.Error("the role that stays is another")
	}
}

// find gives an object by its name, whatever letters that has; nil: there is none.
func (b *bench) find(gvr schema.GroupVersionResource, ns, name string) *unstructured.Unstructured {
	b.t.Helper()
	list, err := b.plane.Dynamic().Resource(gvr).Namespace(ns).List(b.ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + strings.NewReplacer(`\`, `\\`, ",", `\,`, "=", `\=`).Replace(name)})
	if err != nil {
		b.t.Fatal(err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

func toJSON(t *testing.T, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// until waits for what no watch tells.
func (b *bench) until(what string, done func() bool) {
	b.t.Helper()
	err := wait.PollUntilContextTimeout(b.ctx, 100*time.Millisecond, patience, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		b.t.Fatalf("never: %s", what)
	}
}

func definitionSS34(first, second bool) string {
	served := map[bool]string{true: "true", false: "false"}
	return strings.NewReplacer("FIRST", served[first], "SECOND", served[second], "STORED", served[!second]).Replace(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: GROUP}
spec:
  group: SUFFIX
  names: {kind: Old, plural: olds}
  scope: Namespaced
  versions:
  - {name: v1, served: FIRST, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v2, served: SECOND, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`)
}

func TestSS34AnObjectIsNotTakenForGoneBecauseItsVersionIs(t *testing.T) {
	inModes(t, testSS34AnObjectIsNotTakenForGoneBecauseItsVersionIs)
}

func testSS34AnObjectIsNotTakenForGoneBecauseItsVersionIs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-ss-34")
	serve := func(first, second bool) {
		t.Helper()
		document := strings.NewReplacer("GROUP", "olds.ss34.example.test", "SUFFIX", "ss34.example.test").Replace(definitionSS34(first, second))
		if _, err := b.plane.KubectlInput(b.ctx, document, "apply", "--server-side", "--field-manager=operator", "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	old := func(version, name, value string) string {
		return "apiVersion: ss34.example.test/" + version + "\nkind: Old\nmetadata: {name: " + name + ", namespace: " + ns + "}\nspec: {a: " + value + "}\n---\n"
	}
	v1 := schema.GroupVersionResource{Group: "ss34.example.test", Version: "v1", Resource: "olds"}
	v2 := v1.GroupResource().WithVersion("v2")
	serve(true, true)
	b.apply("ss34", ns, old("v1", "leaves", "1")+old("v1", "stays", "1")+configMap(ns, "beside", "v", "1"))
	leaves, stays := b.get(v1, ns, "leaves"), b.get(v1, ns, "stays")
	serve(false, true)
	told := func() {
		t.Helper()
		r := b.report("uid-ss34", "what is not served", func(r tunnel.Report) bool {
			return r.Healthy.Status == tunnel.Unknown && strings.Contains(r.Healthy.Message, "version v1 of Old is not served")
		})
		if r.InSync.Status != tunnel.Unknown || len(r.Exceptions) != 2 {
			t.Errorf("in sync: %+v, exceptions %+v", r.InSync, r.Exceptions)
		}
	}
	told()
	b.restartInMode()
	told()
	b.same(v2, leaves)
	b.same(v2, stays)
	b.mu.Lock()
	for _, r := range b.all {
		if strings.Contains(toJSON(t, r), "does not exist") || strings.Contains(toJSON(t, r), "was deleted") {
			t.Errorf("it is told that something is gone: %s", toJSON(t, r))
		}
	}
	b.mu.Unlock()
	b.apply("ss34", ns, old("v2", "stays", "2")+configMap(ns, "beside", "v", "2"))
	b.gone(v2, ns, "leaves")
	b.same(v2, stays)
	serve(true, false)
	b.report("uid-ss34", "the other version is gone", func(r tunnel.Report) bool {
		return strings.Contains(r.Healthy.Message, "version v2 of Old is not served")
	})
	b.accept(b.bare("ss34", tunnel.VerbRemove))
	b.report("uid-ss34", "removed", func(r tunnel.Report) bool { return r.Done })
	b.gone(v1, ns, "stays")
}

func TestSS26WhyAnObjectIsNotReplacedIsToldBesideWhatCannotChange(t *testing.T) {
	inModes(t, testSS26WhyAnObjectIsNotReplacedIsToldBesideWhatCannotChange)
}

func testSS26WhyAnObjectIsNotReplacedIsToldBesideWhatCannotChange(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-ss-26")
	b.apply("ss26", ns, frozenAll(ns, "one"), replaceImmutable)
	b.foreign(quotas, ns, "q", "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {count/configmaps: \"1\"}}\n")
	b.live(quotas, ns, "q", "counted", func(u *unstructured.Unstructured) bool {
		used, _, err := unstructured.NestedString(u.Object, "status", "used", "count/configmaps")
		return err == nil && used != "" && used != "0"
	})
	b.deny(ns, `{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}`, "no new deployments here")
	web, sealed := b.get(deployments, ns, "web"), b.get(configmaps, ns, "sealed")
	r := b.settled(b.accept(b.order("ss26", ns, frozenAll(ns, "two"), replaceImmutable)))
	for kind, want := range map[string][]string{
		"Deployment": {"spec.selector", "not replaced", "no new deployments here"},
		"ConfigMap":  {"immutable", "not replaced", "exceeded quota", "raise the quota"},
	} {
		message := ""
		for _, e := range r.Exceptions {
			if e.Kind == kind && e.Reason == "Immutable" {
				message = e.Message
			}
		}
		for _, text := range want {
			if !strings.Contains(message, text) {
				t.Errorf("%s: it is not said that %q: %s", kind, text, message)
			}
		}
	}
	b.same(deployments, web)
	b.same(configmaps, sealed)
}

var quotas = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}

// deny has a policy refuse some requests of a namespace, and returns when it holds. What
// it returns lifts it.
func (b *bench) deny(ns, rule, message string) (lift func()) {
	b.t.Helper()
	name := "deny-" + ns
	document := strings.NewReplacer("NAME", name, "NS", ns, "RULE", rule, "MESSAGE", message).Replace(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
    resourceRules:
    - RULE
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [podtemplates]}
  validations: [{expression: "false", message: "MESSAGE"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny]}
`)
	if _, err := b.plane.KubectlInput(b.ctx, document, "create", "-f", "-"); err != nil {
		b.t.Fatal(err)
	}
	probe := `{"apiVersion":"v1","kind":"PodTemplate","metadata":{"name":"probe"},"template":{"spec":{"containers":[{"name":"c","image":"example/app:1"}]}}}`
	b.until("the policy holds", func() bool {
		_, err := b.plane.KubectlInput(b.ctx, probe, "create", "-n", ns, "--dry-run=server", "-f", "-")
		return err != nil && strings.Contains(err.Error(), message)
	})
	return func() {
		b.t.Helper()
		if err := b.plane.Dynamic().Resource(policies).Delete(b.ctx, name, metav1.DeleteOptions{}); err != nil {
			b.t.Fatal(err)
		}
	}
}

func TestHA21AStateThatCannotBeWrittenIsToldAsSuch(t *testing.T) {
	inModes(t, testHA21AStateThatCannotBeWrittenIsToldAsSuch)
}

func testHA21AStateThatCannotBeWrittenIsToldAsSuch(t *testing.T) {
	t.Parallel()
	b := newIdleBench(t)
	keeps := ""
	if b.room != nil {
		keeps = b.room.state
	} else {
		keeps = stateNamespace(t)
		b.open = func() engine.State {
			s, err := state.NewSecrets(b.config, keeps)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		b.state = nil
	}
	b.start()
	ns := b.namespace("t-ha-21")
	b.apply("ha21", ns, configMap(ns, "app", "v", "1")+configMap(ns, "old", "v", "1"))
	old := b.get(configmaps, ns, "old")
	lift := b.deny(keeps, `{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE, DELETE], resources: [secrets]}`, "no secrets today")
	o := b.accept(b.order("ha21", ns, configMap(ns, "app", "v", "2")+configMap(ns, "new", "v", "2")))
	r := b.report("uid-ha21", "that its state cannot be kept", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && strings.Contains(r.Applied.Message, "no secrets today")
	})
	if !strings.HasPrefix(r.Applied.Message, "the agent cannot keep its state (Secret "+keeps+"/") || r.Applied.Status != tunnel.Unknown {
		t.Errorf("applied is %+v", r.Applied)
	}
	b.same(configmaps, old)
	if got := b.get(configmaps, ns, "app"); data(got, "v") != "1" {
		t.Error("something was applied that was not written down")
	}
	lift()
	b.applied(o)
	b.gone(configmaps, ns, "old")
}

func TestYA07WhatKubectlExportedDoesNotFightWithControllers(t *testing.T) {
	inModes(t, testYA07WhatKubectlExportedDoesNotFightWithControllers)
}

func testYA07WhatKubectlExportedDoesNotFightWithControllers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-ya-07")
	b.apply("ya07", ns, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: got, annotations: {deployment.kubernetes.io/revision: "4"}}
spec:
  replicas: 0
  selector: {matchLabels: {app: got}}
  template: {metadata: {labels: {app: got}}, spec: {containers: [{name: c, image: "example/app:1"}]}}
`)
	b.live(deployments, ns, "got", "counted by its controller", func(u *unstructured.Unstructured) bool {
		return u.GetAnnotations()["deployment.kubernetes.io/revision"] == "1"
	})
	b.quiet("an exported Deployment")
	if got := b.get(deployments, ns, "got"); got.GetAnnotations()["deployment.kubernetes.io/revision"] != "1" {
		t.Errorf("the annotation is %v", got.GetAnnotations())
	}
}
