// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/pkg/tunnel"
)

// quiet fails when the engine writes within a while.
func (b *bench) quiet(what string) {
	b.t.Helper()
	before := b.calls.writes.Load()
	select {
	case <-time.After(1500 * time.Millisecond):
	case <-b.ctx.Done():
	}
	if n := b.calls.writes.Load() - before; n > 0 {
		b.t.Errorf("%s: %d writes", what, n)
	}
}

func TestDR01AmountsThatMeanTheSameAreNoDrift(t *testing.T) {
	inModes(t, testDR01AmountsThatMeanTheSameAreNoDrift)
}

func testDR01AmountsThatMeanTheSameAreNoDrift(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("dr01")
	b.apply("dr01", ns, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: calc}
spec:
  replicas: 0
  selector: {matchLabels: {app: calc}}
  template:
    metadata: {labels: {app: calc}}
    spec:
      containers:
      - name: c
        image: example/app:1
        resources:
          requests: {cpu: 0.5, memory: 1000M, ephemeral-storage: 0.5Gi}
          limits: {cpu: 1000m, memory: 1024Mi, ephemeral-storage: 1073741824}
      volumes:
      - name: scratch
        emptyDir: {sizeLimit: 1024Mi}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: team}
spec:
  hard: {requests.cpu: 12000m, requests.memory: 2000M, pods: "010"}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  replicas: 0
  serviceName: store
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec:
      containers:
      - name: c
        image: example/app:1
        resources: {requests: {cpu: 1000m, memory: 1000M}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 1000Mi}}
`)
	b.quiet("after the apply")
	edit := `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"example/app:1","resources":{
	 "requests":{"cpu":"600m","memory":"1000M","ephemeral-storage":"0.5Gi"},"limits":{"cpu":"1","memory":"1Gi","ephemeral-storage":"1Gi"}}}]}}}}`
	_, err := b.plane.Dynamic().Resource(deployments).Namespace(ns).Patch(b.ctx, "calc", types.StrategicMergePatchType, []byte(edit), metav1.PatchOptions{FieldManager: "ui-editor"})
	if err != nil {
		t.Fatal(err)
	}
	r := b.report("uid-dr01", "healed", func(r tunnel.Report) bool { return r.Operation.Type == "Heal" && r.Settled })
	if !strings.Contains(r.Operation.Message, "requests.cpu") || strings.Contains(r.Operation.Message, "limits") || strings.Contains(r.Operation.Message, "memory") {
		t.Errorf("the operation says %q", r.Operation.Message)
	}
	b.quiet("after the repair")
}

func TestDR02RemovedSecretKeysGoAwayAndNoValueIsShown(t *testing.T) {
	inModes(t, testDR02RemovedSecretKeysGoAwayAndNoValueIsShown)
}

func testDR02RemovedSecretKeysGoAwayAndNoValueIsShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("dr02")
	login := func(data string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\ntype: Opaque\n" + data
	}
	b.apply("dr02", ns, login("stringData: {user: alice, token: old-token, multi: \"line1\\nline2\\n\"}"))
	b.apply("dr02", ns, login("stringData: {user: alice, multi: \"line1\\nline2\\n\"}"))
	if got := b.get(secrets, ns, "login"); data(got, "token") != "" {
		t.Error("the dropped key is still there")
	}
	b.edit(secrets, ns, "login", "ui-editor", `{"data":{"user":"Ym9i"}}`)
	b.live(secrets, ns, "login", "healed", func(u *unstructured.Unstructured) bool { return data(u, "user") == "YWxpY2U=" })
	r := b.report("uid-dr02", "healed", func(r tunnel.Report) bool { return r.Operation.Type == "Heal" })
	if want := `Secret dr02/login: data.user changed by "ui-editor"`; r.Operation.Message != want {
		t.Errorf("the operation says %q", r.Operation.Message)
	}
	b.apply("dr02", ns, login("data: {user: Ym9i}\nstringData: {user: carol}"))
	b.quiet("after the last apply")
}

func TestDR04WhatAServerWritesIsNotTakenFromARender(t *testing.T) {
	inModes(t, testDR04WhatAServerWritesIsNotTakenFromARender)
}

func testDR04WhatAServerWritesIsNotTakenFromARender(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("dr04")
	crd := func(versions, stored string) string {
		return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.dr04.example.test, creationTimestamp: null}
spec:
  group: dr04.example.test
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
` + versions + `
status: {acceptedNames: {kind: Gadget, plural: gadgets}, conditions: [], storedVersions: [` + stored + `]}
---
`
	}
	b.apply("dr04", ns, crd("", "")+`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: exported
  creationTimestamp: "2001-01-01T00:00:00Z"
  uid: 00000000-0000-0000-0000-000000000001
  resourceVersion: "1"
  generation: 7
  managedFields: []
spec:
  replicas: 0
  selector: {matchLabels: {app: exported}}
  template:
    metadata: {creationTimestamp: null, labels: {app: exported}}
    spec:
      containers: [{name: c, image: "example/app:1", resources: {}}]
status: {replicas: 9, conditions: null}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: exported, creationTimestamp: null}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    metadata: {creationTimestamp: null}
    spec:
      template:
        metadata: {creationTimestamp: null}
        spec:
          restartPolicy: Never
          containers: [{name: c, image: "example/app:1"}]
status: {}
`)
	for _, e := range b.get(deployments, ns, "exported").GetManagedFields() {
		if e.Manager == "convoy" && strings.Contains(e.FieldsV1.String(), "f:status") {
			t.Error("the engine owns a field of the status")
		}
	}
	b.quiet("after the apply")
	b.apply("dr04", ns, crd("  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}", "v0"))
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	stored, _, err := unstructured.NestedStringSlice(b.get(crds, "", "gadgets.dr04.example.test").Object, "status", "storedVersions")
	if err != nil || len(stored) != 1 || stored[0] != "v1" {
		t.Errorf("stored versions are %v, %v", stored, err)
	}
	b.gone(deployments, ns, "exported")
}

func TestDR05RulesOfAnAggregatedRoleStayWithTheControlPlane(t *testing.T) {
	inModes(t, testDR05RulesOfAnAggregatedRoleStayWithTheControlPlane)
}

func testDR05RulesOfAnAggregatedRoleStayWithTheControlPlane(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("dr05")
	roles := func(rev string) string {
		return `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: dr05-sum, labels: {rev: "` + rev + `"}}
aggregationRule:
  clusterRoleSelectors:
  - matchLabels: {dr05: part}
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: dr05-part, labels: {dr05: part}}
rules:
- {apiGroups: [""], resources: [pods], verbs: [get, list]}
`
	}
	b.apply("dr05", ns, roles("1"))
	clusterroles := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	full := func(u *unstructured.Unstructured) bool {
		rules, _, err := unstructured.NestedSlice(u.Object, "rules")
		return err == nil && len(rules) == 1
	}
	b.live(clusterroles, "", "dr05-sum", "filled", full)
	b.quiet("after the control plane filled it")
	w, err := b.plane.Dynamic().Resource(clusterroles).Watch(b.ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=dr05-sum", ResourceVersion: b.get(clusterroles, "", "dr05-sum").GetResourceVersion(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	b.apply("dr05", ns, roles("2"))
	// The watch has seen all when it has seen a mark that is put on last.
	b.edit(clusterroles, "", "dr05-sum", "somebody", `{"metadata":{"annotations":{"seen":"all"}}}`)
	for event := range w.ResultChan() {
		u, ok := event.Object.(*unstructured.Unstructured)
		if !ok || !full(u) {
			t.Fatalf("a watch saw %v", event.Object)
		}
		if u.GetAnnotations()["seen"] != "" {
			break
		}
	}
}

func TestDR08OrderIsTheRendersAndWhatOthersAddedStays(t *testing.T) {
	inModes(t, testDR08OrderIsTheRendersAndWhatOthersAddedStays)
}

func testDR08OrderIsTheRendersAndWhatOthersAddedStays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("dr08")
	app := func(rest string) string {
		return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  replicas: 0
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      containers:
      - name: c
        image: example/app:1
` + rest
	}
	b.apply("dr08", ns, app(`        ports: [{name: metrics, containerPort: 9000}]
        env: [{name: B, value: "b-$(A)"}, {name: A, value: "a"}, {name: GONE, value: "x"}]
`))
	_, err := b.plane.Dynamic().Resource(deployments).Namespace(ns).Apply(b.ctx, "app", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "app"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{
				map[string]any{"name": "c", "env": []any{map[string]any{"name": "PROXY", "value": "on"}}},
				map[string]any{"name": "sidecar", "image": "example/sidecar:1"},
			},
			"volumes": []any{map[string]any{"name": "token", "emptyDir": map[string]any{}}},
		}}},
	}}, metav1.ApplyOptions{FieldManager: "injector"})
	if err != nil {
		t.Fatal(err)
	}
	b.quiet("after the injection")
	b.apply("dr08", ns, app(`        env: [{name: A, value: "a"}, {name: B, value: "b-$(A)"}]
`))
	containers, _, err := unstructured.NestedSlice(b.get(deployments, ns, "app").Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 2 {
		t.Fatalf("containers are %v, %v", containers, err)
	}
	c, ok := containers[0].(map[string]any)
	if !ok || c["ports"] != nil {
		t.Errorf("the dropped ports are still there: %v", c["ports"])
	}
	env, ok := c["env"].([]any)
	if !ok {
		t.Fatalf("no env in %v", c)
	}
	var names []string
	for _, e := range env {
		if m, ok := e.(map[string]any); ok {
			if name, ok := m["name"].(string); ok && name != "PROXY" {
				names = append(names, name)
			}
		}
	}
	if diff := cmp.Diff([]string{"A", "B"}, names); diff != "" || len(env) != 3 {
		t.Errorf("env is %v (-want +got):\n%s", env, diff)
	}
}

func TestSS04AClaimTemplateIsNeverReplaced(t *testing.T) {
	inModes(t, testSS04AClaimTemplateIsNeverReplaced)
}

func testSS04AClaimTemplateIsNeverReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("ss04")
	db := func(image, claim string) string {
		return `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 0
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: c, image: "` + image + `"}]
  volumeClaimTemplates:
  - ` + claim + `
`
	}
	claim := "{metadata: {name: data, creationTimestamp: null}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: %}}}}"
	b.apply("ss04", ns, db("example/db:1", strings.Replace(claim, "%", "1Gi", 1)))
	b.quiet("after the apply")
	b.apply("ss04", ns, db("example/db:2", strings.Replace(strings.Replace(claim, "%", "1024Mi", 1), "{metadata", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata", 1)))
	sets := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	uid := b.get(sets, ns, "db").GetUID()
	o := b.accept(b.order("ss04", ns, db("example/db:3", strings.Replace(claim, "%", "2Gi", 1))))
	r := b.settled(o)
	if r.Applied.Reason != "DryRunFailed" || !strings.Contains(r.Applied.Message, "StatefulSet ss04/db") || r.Exceptions[0].Reason != "Immutable" {
		t.Errorf("applied is %+v, exceptions %+v", r.Applied, r.Exceptions)
	}
	if got := b.get(sets, ns, "db"); got.GetUID() != uid {
		t.Error("the StatefulSet was made anew")
	}
}

func TestSS06LargeObjectsArriveAndOneTooLargeIsRefusedByName(t *testing.T) {
	inModes(t, testSS06LargeObjectsArriveAndOneTooLargeIsRefusedByName)
}

func testSS06LargeObjectsArriveAndOneTooLargeIsRefusedByName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("ss06")
	render := func(big int) string {
		var out strings.Builder
		out.WriteString(configMap(ns, "big", "blob", strings.Repeat("x", big)))
		for _, name := range strings.Split("a b c d e f g h i j k l m n o p q r s t", " ") {
			out.WriteString(configMap(ns, "part-"+name, "blob", strings.Repeat(name, 100000)))
		}
		return out.String()
	}
	b.apply("ss06", ns, render(900000))
	if got := b.get(configmaps, ns, "big"); len(data(got, "blob")) != 900000 {
		t.Errorf("%d bytes arrived", len(data(got, "blob")))
	}
	o := b.accept(b.order("ss06", ns, render(1300000)))
	r := b.settled(o)
	if !strings.Contains(r.Applied.Message, "ConfigMap ss06/big") || len(r.Applied.Message) > 512 || strings.Contains(r.Applied.Message, "xxxx") {
		t.Errorf("applied is %+v", r.Applied)
	}
	if got := b.get(configmaps, ns, "big"); len(data(got, "blob")) != 900000 {
		t.Error("the old content is gone")
	}
}

func TestSS08ADeadAPIHarmsNobodyElse(t *testing.T) { inModes(t, testSS08ADeadAPIHarmsNobodyElse) }

func testSS08ADeadAPIHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("ss08")
	two := func(v string) string { return configMap(ns, "a", "k", v) }
	b.apply("ss08", ns, two("1")+configMap(ns, "b", "k", "1"))
	services := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	dead := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1beta1.dead.example.test"},
		"spec": map[string]any{
			"group": "dead.example.test", "version": "v1beta1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true, "service": map[string]any{"name": "gone", "namespace": ns},
		},
	}}
	if _, err := b.plane.Dynamic().Resource(services).Create(b.ctx, dead, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A dead API would keep the namespaces of other tests from being deleted.
		if err := b.plane.Dynamic().Resource(services).Delete(context.WithoutCancel(t.Context()), "v1beta1.dead.example.test", metav1.DeleteOptions{}); err != nil {
			t.Log(err)
		}
	})
	b.apply("ss08", ns, two("2"))
	b.gone(configmaps, ns, "b")
	b.halt()
	b.start()
	thing := "apiVersion: dead.example.test/v1beta1\nkind: Thing\nmetadata: {name: t, namespace: " + ns + "}\n"
	o := b.accept(b.order("ss08", ns, two("3")+thing))
	r := b.report("uid-ss08", "waits for the thing", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Applied.Reason == "Blocked" && strings.Contains(r.Applied.Message, "Thing")
	})
	if r.Applied.Status != tunnel.Unknown {
		t.Errorf("applied is %+v", r.Applied)
	}
	b.live(configmaps, ns, "a", "applied", func(u *unstructured.Unstructured) bool { return data(u, "k") == "3" })
}
