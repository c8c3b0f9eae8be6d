// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"kumodo.io/convoy/pkg/tunnel"
)

// operator is what lifts the finalizers of its objects as long as it can: while its
// Deployment and its account are there, and with the rights of that account.
type operator struct {
	b     *bench
	ns    string
	group string
	boxes schema.GroupVersionResource
	name  string // of cluster-scoped objects
}

const cleanUp = "operator.example.test/clean"

func (b *bench) operator(ns string) *operator {
	group := ns + ".example.test"
	return &operator{b: b, ns: ns, group: group, name: ns, boxes: schema.GroupVersionResource{Group: group, Version: "v1", Resource: "boxes"}}
}

func (o *operator) definition() string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.` + o.group + `}
spec:
  group: ` + o.group + `
  names: {kind: Box, plural: boxes}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
`
}

// manifests of the operator without its definition.
func (o *operator) manifests() string {
	return `apiVersion: apps/v1
kind: Deployment
metadata: {name: operator}
spec:
  replicas: 0
  selector: {matchLabels: {app: op}}
  template:
    metadata: {labels: {app: op}}
    spec: {serviceAccountName: op, containers: [{name: c, image: "example.test/op:1"}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: op}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ` + o.name + `}
rules:
- {apiGroups: [` + o.group + `], resources: ["*"], verbs: ["*"]}
- {apiGroups: [""], resources: [configmaps, services], verbs: [get, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ` + o.name + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ` + o.name + `}
subjects: [{kind: ServiceAccount, name: op, namespace: ` + o.ns + `}]
---
`
}

func (o *operator) box(name, metadata string) string {
	return "apiVersion: " + o.group + "/v1\nkind: Box\nmetadata: {name: " + name + metadata + "}\n---\n"
}

func kept(kind, name string) string {
	out := "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + ", finalizers: [" + cleanUp + "]}\n"
	if kind == "Service" {
		out += "spec: {selector: {app: op}, ports: [{port: 80}]}\n"
	}
	return out + "---\n"
}

// run works until the test is over. It looks, as a program that has just got a deletion
// from its watch does, and then acts.
func (o *operator) run(names map[string]schema.GroupVersionResource) {
	config := rest.CopyConfig(o.b.plane.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + o.ns + ":op"}
	self, err := dynamic.NewForConfig(config)
	if err != nil {
		o.b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(o.b.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			for name, gvr := range names {
				// What cannot be done now is tried again, as an operator does.
				if err := o.lift(ctx, self.Resource(gvr).Namespace(o.ns), name); err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
					o.b.log.Info("the operator cannot lift a finalizer", "name", name, "error", err.Error())
				}
			}
			return false, nil
		})
		if ctx.Err() == nil {
			o.b.t.Error(err)
		}
	}()
	o.b.t.Cleanup(func() { cancel(); <-ended })
}

func (o *operator) lift(ctx context.Context, client dynamic.ResourceInterface, name string) error {
	u, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil || u.GetDeletionTimestamp() == nil {
		return err
	}
	accounts := configmaps
	accounts.Resource = "serviceaccounts"
	for gvr, name := range map[schema.GroupVersionResource]string{deployments: "operator", accounts: "op"} {
		part, err := o.b.plane.Dynamic().Resource(gvr).Namespace(o.ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if part.GetDeletionTimestamp() != nil {
			return nil
		}
	}
	_, err = client.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	return err
}

func TestPR10WhatAnOperatorHasToLetGoIsDeletedBeforeTheOperator(t *testing.T) {
	inModes(t, testPR10WhatAnOperatorHasToLetGoIsDeletedBeforeTheOperator)
}

func testPR10WhatAnOperatorHasToLetGoIsDeletedBeforeTheOperator(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, way := range []string{"removal", "prune"} {
		ns := b.namespace("pr10-" + way)
		o := b.operator(ns)
		held := ", finalizers: [" + cleanUp + "]"
		documents := o.definition() + o.manifests() + o.box("one", held) + o.box("two", held) + o.box("free", "") + kept("ConfigMap", "settings") + kept("Service", "front")
		name := "rel-" + ns
		b.apply(name, ns, configMap(ns, "stays", "k", "v")+documents)
		o.run(map[string]schema.GroupVersionResource{"one": o.boxes, "two": o.boxes, "settings": configmaps, "front": services})
		if way == "removal" {
			b.accept(b.bare(name, tunnel.VerbRemove))
			r := b.report("uid-"+name, "removed", func(r tunnel.Report) bool { return r.Done })
			if !strings.Contains(r.Applied.Message, "CustomResourceDefinition boxes."+o.group) {
				t.Errorf("what stays is not told: %+v", r.Applied)
			}
		} else {
			b.applied(b.accept(b.order(name, ns, configMap(ns, "stays", "k", "v"), func(o *tunnel.Order) {
				o.Policy.Allowed = []string{"CustomResourceDefinition"}
			})))
			b.gone(definitions, "", "boxes."+o.group)
		}
		for object, gvr := range map[string]schema.GroupVersionResource{"operator": deployments, "settings": configmaps, "front": services} {
			b.gone(gvr, ns, object)
		}
		if way == "removal" {
			for _, object := range []string{"one", "two", "free"} {
				b.gone(o.boxes, ns, object)
			}
		}
	}
}

func TestPR10WhatIsHeldBeyondTheDeadlineIsNamedAndItsOperatorStays(t *testing.T) {
	inModes(t, testPR10WhatIsHeldBeyondTheDeadlineIsNamedAndItsOperatorStays)
}

func testPR10WhatIsHeldBeyondTheDeadlineIsNamedAndItsOperatorStays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("pr10-held")
	o := b.operator(ns)
	b.apply("pr10-held", ns, o.definition()+o.manifests()+o.box("one", ", finalizers: ["+cleanUp+"]")+o.box("free", ""))
	foreign := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": o.group + "/v1", "kind": "Box", "metadata": map[string]any{"name": "theirs", "finalizers": []any{cleanUp}},
	}}
	if _, err := b.plane.Dynamic().Resource(o.boxes).Namespace(ns).Create(b.ctx, foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.accept(b.bare("pr10-held", tunnel.VerbRemove, func(o *tunnel.Order) {
		o.Policy.TimeoutSeconds, o.Policy.Allowed = 1, []string{"CustomResourceDefinition"}
	}))
	r := b.report("uid-pr10-held", "the deadline has passed", func(r tunnel.Report) bool {
		return r.Applied.Reason == "PruneFailed" && r.Settled
	})
	if !strings.Contains(r.Applied.Message, "Box "+ns+"/one") || !strings.Contains(r.Applied.Message, cleanUp) {
		t.Errorf("applied is %+v", r.Applied)
	}
	if len(r.Exceptions) != 1 || r.Exceptions[0].Reason != "Terminating" || r.Exceptions[0].Name != "one" || r.Exceptions[0].Since.IsZero() {
		t.Errorf("exceptions are %+v", r.Exceptions)
	}
	b.gone(o.boxes, ns, "free")
	for resource, name := range map[string]string{"deployments": "operator", "serviceaccounts": "op", "clusterroles": ns, "clusterrolebindings": ns} {
		gvr := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
		in := ""
		switch resource {
		case "deployments":
			gvr, in = deployments, ns
		case "serviceaccounts":
			gvr.Group, in = "", ns
		}
		if b.get(gvr, in, name).GetDeletionTimestamp() != nil {
			t.Errorf("%s %s is being deleted before what it has to let go", resource, name)
		}
	}
	// Also for an engine that begins anew.
	b.restartInMode()
	o.run(map[string]schema.GroupVersionResource{"one": o.boxes})
	r = b.report("uid-pr10-held", "removed", func(r tunnel.Report) bool { return r.Done })
	if !strings.Contains(r.Applied.Message, "Box "+ns+"/theirs") {
		t.Errorf("what stays is not told: %+v", r.Applied)
	}
	b.gone(deployments, ns, "operator")
	if b.get(o.boxes, ns, "theirs").GetDeletionTimestamp() != nil || b.get(definitions, "", "boxes."+o.group).GetDeletionTimestamp() != nil {
		t.Error("somebody's object is being deleted")
	}
}

func TestWhatIsRefusedUntilALaterKindIsGoneHoldsNothing(t *testing.T) {
	inModes(t, testWhatIsRefusedUntilALaterKindIsGoneHoldsNothing)
}

func testWhatIsRefusedUntilALaterKindIsGoneHoldsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("guarded")
	o := b.operator(ns)
	b.apply("guarded", ns, o.definition()+o.manifests()+o.box("one", "")+configMap(ns, "guard", "k", "v"))
	policies := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	bindings := policies
	bindings.Resource = "validatingadmissionpolicybindings"
	// As long as there is a ConfigMap guard, no Box may go.
	b.foreign(policies, "", ns, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: `+ns+`}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules: [{apiGroups: [`+o.group+`], apiVersions: ["*"], operations: [DELETE], resources: [boxes]}]
  validations: [{expression: "params == null", message: "there is a guard"}]
`)
	b.foreign(bindings, "", ns, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: `+ns+`}
spec:
  policyName: `+ns+`
  validationActions: [Deny]
  paramRef: {name: guard, namespace: `+ns+`, parameterNotFoundAction: Allow}
`)
	// It holds when the server says so.
	err := wait.PollUntilContextTimeout(b.ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := b.plane.Dynamic().Resource(o.boxes).Namespace(ns).Delete(ctx, "one", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "there is a guard"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.accept(b.bare("guarded", tunnel.VerbRemove))
	b.report("uid-guarded", "removed", func(r tunnel.Report) bool { return r.Done })
	b.gone(o.boxes, ns, "one")
	b.gone(configmaps, ns, "guard")
}

func TestWhatADeletionWaitsForIsNamedAlsoWhileAnotherReleaseCannotBeRead(t *testing.T) {
	inModes(t, testWhatADeletionWaitsForIsNamedAlsoWhileAnotherReleaseCannotBeRead)
}

func testWhatADeletionWaitsForIsNamedAlsoWhileAnotherReleaseCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("unread")
	long := func(o *tunnel.Order) { o.Policy.TimeoutSeconds = 600 }
	b.apply("unread", ns, kept("ConfigMap", "held")+configMap(ns, "free", "k", "v"))
	away := b.order("unread-other", ns, configMap(ns, "theirs", "k", "v"))
	away.Objects = &tunnel.Layer{Digest: "sha256:" + strings.Repeat("0", 64), Size: 100}
	b.accept(away)
	b.accept(b.bare("unread", tunnel.VerbRemove, long))
	says := func(what string, parts ...string) {
		t.Helper()
		b.report("uid-unread", what, func(r tunnel.Report) bool {
			for _, part := range parts {
				if !strings.Contains(r.Applied.Message, part) {
					return false
				}
			}
			return true
		})
	}
	says("names the Release that cannot be read", "ConfigMap "+ns+"/held", "it cannot be told what Release apps/unread-other has in its render", "1 more are deleted after it")
	// Deleted by somebody, it is waited for as it is.
	if err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Delete(b.ctx, "held", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	says("names the finalizer", "ConfigMap "+ns+"/held", "held by finalizer "+cleanUp, "1 more are deleted after it")
	b.edit(configmaps, ns, "held", "owner", `{"metadata":{"finalizers":null}}`)
	says("names the Release that cannot be read for what is left", "ConfigMap "+ns+"/free", "it cannot be told what Release apps/unread-other has in its render")
	b.get(configmaps, ns, "free")
	b.applied(b.accept(b.order("unread-other", ns, configMap(ns, "theirs", "k", "v"))))
	b.report("uid-unread", "removed", func(r tunnel.Report) bool { return r.Done })
	b.gone(configmaps, ns, "free")
}
