// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
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
	documents := `
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
`
	b.apply("dr01", ns, documents)
	b.quiet("after the apply")
	edit := `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"example/app:1","resources":{
	 "requests":{"cpu":"600m","memory":"1000M","ephemeral-storage":"0.5Gi"},"limits":{"cpu":"1","memory":"1Gi","ephemeral-storage":"1Gi"}}}]}}}}`
	manually := func() {
		t.Helper()
		_, err := b.plane.Dynamic().Resource(deployments).Namespace(ns).Patch(b.ctx, "calc", types.StrategicMergePatchType, []byte(edit), metav1.PatchOptions{FieldManager: "ui-editor"})
		if err != nil {
			t.Fatal(err)
		}
	}
	manually()
	r := b.report("uid-dr01", "healed", func(r tunnel.Report) bool { return r.Operation.Type == "Heal" && r.Settled })
	if !strings.Contains(r.Operation.Message, "requests.cpu") || strings.Contains(r.Operation.Message, "limits") || strings.Contains(r.Operation.Message, "memory") {
		t.Errorf("the operation says %q", r.Operation.Message)
	}
	b.quiet("after the repair")
	// Where drift is shown and not repaired it is told as such.
	o := b.accept(b.order("dr01", ns, documents, func(o *tunnel.Order) { o.Policy.Automatic = false }))
	b.applied(o)
	manually()
	r = b.report("uid-dr01", "drifted", func(r tunnel.Report) bool {
		// Which fields are told when the server was asked.
		return r.Sequence == o.Sequence && r.InSync.Status == tunnel.False && r.Counts.Drifted == 1 && !strings.Contains(r.InSync.Message, "not as it was applied")
	})
	if m := r.InSync.Message; !strings.Contains(m, "Deployment "+ns+"/calc") || !strings.Contains(m, "requests.cpu") || strings.Contains(m, "limits") || strings.Contains(m, "memory") {
		t.Errorf("in sync is %+v", r.InSync)
	}
}

func TestDR02RemovedSecretKeysGoAwayAndNoValueIsShown(t *testing.T) {
	inModes(t, testDR02RemovedSecretKeysGoAwayAndNoValueIsShown)
}

func testDR02RemovedSecretKeysGoAwayAndNoValueIsShown(t *testing.T) {
	t.Parallel()
	b := newIdleBench(t)
	var lines logged
	b.log = lines.logger()
	b.start()
	ns := b.namespace("dr02")
	login := func(data string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\ntype: Opaque\n" + data
	}
	b.apply("dr02", ns, login("stringData: {user: alice, token: old-token, multi: \"line1\\nline2\\n\"}"))
	if got := data(b.get(secrets, ns, "login"), "token"); got != base64.StdEncoding.EncodeToString([]byte("old-token")) {
		t.Errorf("the token is %q", got)
	}
	b.quiet("after the first apply")
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
	o := b.accept(b.order("dr02", ns, login("stringData: {user: alice, multi: \"line1\\nline2\\n\"}"), func(o *tunnel.Order) { o.Policy.Automatic = false }))
	b.applied(o)
	b.edit(secrets, ns, "login", "ui-editor", `{"data":{"user":"Ym9i"}}`)
	r = b.report("uid-dr02", "drifted", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.InSync.Status == tunnel.False && !strings.Contains(r.InSync.Message, "not as it was applied")
	})
	if m := r.InSync.Message; !strings.Contains(m, "Secret dr02/login") || !strings.Contains(m, "data.user") {
		t.Errorf("in sync is %+v", r.InSync)
	}
	b.apply("dr02", ns, login("data: {user: Ym9i}\nstringData: {user: carol}"))
	if got := data(b.get(secrets, ns, "login"), "user"); got != base64.StdEncoding.EncodeToString([]byte("carol")) {
		t.Errorf("the user is %q", got)
	}
	b.quiet("after the last apply")
	// No value is in what is told or logged.
	b.mu.Lock()
	told := mustText(t, b.all)
	b.mu.Unlock()
	for where, text := range map[string]string{"reports": told, "log": lines.String()} {
		for _, value := range []string{"alice", "old-token", "line1", "carol"} {
			for _, secret := range []string{value, base64.StdEncoding.EncodeToString([]byte(value))} {
				if strings.Contains(text, secret) {
					t.Errorf("%s in the %s", secret, where)
				}
			}
		}
		if strings.Contains(text, "Ym9i") {
			t.Errorf("bob in the %s", where)
		}
	}
	if lines.String() == "" {
		t.Error("nothing was logged")
	}
}

// logged keeps what is logged.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.text.WriteString(prefix + " " + args + "\n")
	}, funcr.Options{Verbosity: 10})
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
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
	crons := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}
	for _, object := range []*unstructured.Unstructured{
		b.get(deployments, ns, "exported"), b.get(crons, ns, "exported"), b.get(definitions, "", "gadgets.dr04.example.test"),
	} {
		for _, e := range object.GetManagedFields() {
			if e.Manager == "convoy" && strings.Contains(e.FieldsV1.String(), "f:status") {
				t.Errorf("the engine owns a field of the status of %s %s", object.GetKind(), object.GetName())
			}
		}
	}
	b.quiet("after the apply")
	b.apply("dr04", ns, crd("  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}", "v0"))
	gadgets := b.get(definitions, "", "gadgets.dr04.example.test")
	stored, _, err := unstructured.NestedStringSlice(gadgets.Object, "status", "storedVersions")
	if err != nil || len(stored) != 1 || stored[0] != "v1" {
		t.Errorf("stored versions are %v, %v", stored, err)
	}
	versions, err := json.Marshal(gadgets.Object["spec"])
	if err != nil || strings.Count(string(versions), `"served":true`) != 2 || !strings.Contains(string(versions), `"name":"v2"`) {
		t.Errorf("the definition is %s, %v", versions, err)
	}
	b.gone(deployments, ns, "exported")
	b.gone(crons, ns, "exported")
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
	b.mu.Lock()
	for _, r := range b.all {
		if r.Applied.Status == tunnel.False {
			t.Errorf("a report on the way says %+v", r.Applied)
		}
	}
	b.mu.Unlock()
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
