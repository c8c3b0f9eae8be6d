// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/pkg/tunnel"
)

var (
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
)

// clientSide makes an object as kubectl's client-side apply does.
func (b *bench) clientSide(gvr schema.GroupVersionResource, ns, document string) {
	b.t.Helper()
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
		b.t.Fatal(err)
	}
	last, err := json.Marshal(object.Object)
	if err != nil {
		b.t.Fatal(err)
	}
	object.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(last)})
	if _, err := b.plane.Dynamic().Resource(gvr).Namespace(ns).Create(b.ctx, &object, metav1.CreateOptions{FieldManager: "kubectl-client-side-apply"}); err != nil {
		b.t.Fatal(err)
	}
}

func TestSS01ADoubledVariableIsCleanedUpByAdoptionAndNamedWithItsContainerInARender(t *testing.T) {
	inModes(t, testSS01ADoubledVariableIsCleanedUpByAdoptionAndNamedWithItsContainerInARender)
}

func testSS01ADoubledVariableIsCleanedUpByAdoptionAndNamedWithItsContainerInARender(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-ss-01")
	deployment := func(image string, env ...string) string {
		return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: twice, namespace: ` + ns + `}
spec:
  replicas: 0
  selector: {matchLabels: {app: twice}}
  template:
    metadata: {labels: {app: twice}}
    spec:
      containers:
      - name: c
        image: ` + image + `
        env: [` + strings.Join(env, ", ") + `]
---
`
	}
	one, two := "{name: MODE, value: one}", "{name: MODE, value: two}"
	b.clientSide(deployments, ns, strings.TrimSuffix(deployment("example/app:1", one, two), "---\n"))
	b.apply("ss01", ns, deployment("example/app:1", two))
	env := func() []any {
		containers, _, err := unstructured.NestedSlice(b.get(deployments, ns, "twice").Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) != 1 {
			t.Fatalf("containers %v: %v", containers, err)
		}
		list, _, err := unstructured.NestedSlice(containers[0].(map[string]any), "env")
		if err != nil {
			t.Fatal(err)
		}
		return append(list, containers[0].(map[string]any)["image"])
	}
	if got := fmt.Sprint(env()); got != "[map[name:MODE value:two] example/app:1]" {
		t.Errorf("after the adoption there is %s", got)
	}
	calls := b.calls.n.Load()
	o := b.accept(b.order("ss01", ns, deployment("example/app:2", one, two)+configMap(ns, "neighbour", "k", "v")))
	r := b.settled(o)
	for _, words := range []string{"Deployment " + ns + "/twice", `containers[name="c"]`, "MODE", "1 of 2 objects refused, nothing applied"} {
		if !strings.Contains(r.Applied.Message, words) {
			t.Errorf("the message does not say %q: %s", words, r.Applied.Message)
		}
	}
	if r.Applied.Reason != "DryRunFailed" || r.InSync.Status == tunnel.True || len(r.Exceptions) != 1 || r.Exceptions[0].Reason != "Rejected" {
		t.Errorf("applied %+v, in sync %+v, exceptions %+v", r.Applied, r.InSync, r.Exceptions)
	}
	if got := fmt.Sprint(env()); got != "[map[name:MODE value:two] example/app:1]" {
		t.Errorf("the refused render left %s", got)
	}
	tries := 0
	for _, call := range b.calls.since(calls) {
		if strings.Contains(call, "/twice?") {
			tries++
		}
	}
	if tries > 2 {
		t.Errorf("the server's 500 was taken for a passing fault: tried %d times", tries)
	}
}

const ss03 = `
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: %[1]s}
spec:
  backoffLimit: 0
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: "example/migrate:%[2]s"}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: a-name-that-is-so-long-that-a-probe-has-to-cut-it-short, namespace: %[1]s}
spec:
  replicas: 0
  selector: {matchLabels: {app: web%[3]s}}
  template:
    metadata: {labels: {app: web, tier: front}}
    spec:
      containers: [{name: c, image: "example/app:1"}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: %[1]s}
spec:
  clusterIP: %[4]s
  selector: {app: web}
  ports: [{port: 80}]
---
apiVersion: v1
kind: Secret
metadata: {name: typed, namespace: %[1]s}
type: %[5]s
data: {k: c3dvcmRmaXNo}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: frozen, namespace: %[1]s}
immutable: true
data: {k: "%[2]s"}
---
`

func TestSS03EachImmutableFieldIsNamedShortlyAndReplacedOnlyWhereThePolicySaysSo(t *testing.T) {
	inModes(t, testSS03EachImmutableFieldIsNamedShortlyAndReplacedOnlyWhereThePolicySaysSo)
}

func testSS03EachImmutableFieldIsNamedShortlyAndReplacedOnlyWhereThePolicySaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-ss-03")
	const long = "a-name-that-is-so-long-that-a-probe-has-to-cut-it-short"
	live := map[string]schema.GroupVersionResource{"migrate": jobs, long: deployments, "web": services, "typed": secrets, "frozen": configmaps}
	v1 := fmt.Sprintf(ss03, ns, "1", "", "None", "Opaque") + configMap(ns, "free", "k", "one")
	v2 := fmt.Sprintf(ss03, ns, "2", ", tier: front", "10.96.0.77", "example.test/other") + configMap(ns, "free", "k", "two")
	uids := func() map[string]types.UID {
		out := map[string]types.UID{}
		for name, gvr := range live {
			out[name] = b.get(gvr, ns, name).GetUID()
		}
		return out
	}
	waiting := func(o tunnel.Order) tunnel.Report {
		// A suspended Job is not healthy, which is of no interest here.
		return b.report("uid-ss03", "applied", func(r tunnel.Report) bool { return r.Sequence == o.Sequence && r.Applied.Status == tunnel.True })
	}
	waiting(b.accept(b.order("ss03", ns, v1)))
	before := uids()
	r := b.settled(b.accept(b.order("ss03", ns, v2)))
	fields := map[string]string{"Job": "spec.template", "Deployment": "spec.selector", "Service": "spec.clusterIP", "Secret": "type", "ConfigMap": "data"}
	for _, e := range r.Exceptions {
		field, known := fields[e.Kind]
		if !known || e.Reason != "Immutable" || !strings.Contains(e.Message, field) || len(e.Message) > 300 || strings.Contains(e.Message, "c3dvcmRmaXNo") {
			t.Errorf("exception %+v", e)
		}
		delete(fields, e.Kind)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(fields) > 0 || len(raw) > 16<<10 || r.InSync.Status != tunnel.False || !strings.Contains(r.Applied.Message, "5 of 6 objects refused, nothing applied") {
		t.Errorf("not named: %v, %d bytes, in sync %+v, applied %+v", fields, len(raw), r.InSync, r.Applied)
	}
	for name, uid := range uids() {
		if uid != before[name] {
			t.Errorf("%s was made anew", name)
		}
	}
	if data(b.get(configmaps, ns, "free"), "k") != "one" {
		t.Error("an object of a refused render was applied")
	}
	o := b.accept(b.order("ss03", ns, v1))
	clean := b.report("uid-ss03", "applied and in sync", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Applied.Status == tunnel.True && r.InSync.Status == tunnel.True
	})
	for _, e := range clean.Exceptions {
		if e.Reason == "Immutable" {
			t.Errorf("a failure is left: %+v", e)
		}
	}
	waiting(b.accept(b.order("ss03", ns, v2, func(o *tunnel.Order) { o.Policy.Replace = true })))
	for name, uid := range uids() {
		if uid == before[name] {
			t.Errorf("%s was not made anew", name)
		}
	}
	replaced := uids()
	b.restartInMode()
	b.report("uid-ss03", "in sync after a restart", func(r tunnel.Report) bool { return r.InSync.Status == tunnel.True })
	for name, uid := range uids() {
		if uid != replaced[name] {
			t.Errorf("%s was made anew twice", name)
		}
	}
}

func TestSS04AClaimTemplateThatChangesIsNamedAsWhatItIs(t *testing.T) {
	inModes(t, testSS04AClaimTemplateThatChangesIsNamedAsWhatItIs)
}

func testSS04AClaimTemplateThatChangesIsNamedAsWhatItIs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-ss-04")
	db := func(image, size, more string) string {
		return `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 1
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: c, image: "` + image + `"}]
  volumeClaimTemplates:
  - metadata: {name: data, creationTimestamp: null}
    ` + more + `
    spec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: ` + size + `}}
`
	}
	b.apply("ss04", ns, db("example/db:1", "1Gi", ""))
	b.quiet("after the apply")
	b.apply("ss04", ns, db("example/db:2", "1024Mi", "apiVersion: v1\n    kind: PersistentVolumeClaim"))
	before, claim := b.get(statefulSets, ns, "db"), b.get(claims, ns, "data-db-0")
	r := b.settled(b.accept(b.order("ss04", ns, db("example/db:3", "2Gi", ""), func(o *tunnel.Order) { o.Policy.Replace = false })))
	if len(r.Exceptions) == 0 || r.Exceptions[0].Reason != "Immutable" || !strings.HasPrefix(r.Exceptions[0].Message, "spec.volumeClaimTemplates: cannot be changed") ||
		r.Applied.Reason != "DryRunFailed" || !strings.Contains(r.Applied.Message, "StatefulSet "+ns+"/db") || r.InSync.Status != tunnel.False {
		t.Errorf("applied %+v, exceptions %+v", r.Applied, r.Exceptions)
	}
	after := b.get(statefulSets, ns, "db")
	if after.GetUID() != before.GetUID() || !strings.Contains(fmt.Sprint(after.Object["spec"]), "example/db:2") {
		t.Errorf("the StatefulSet is %v", after.Object["spec"])
	}
	if got := b.get(claims, ns, "data-db-0"); got.GetUID() != claim.GetUID() || got.GetResourceVersion() != claim.GetResourceVersion() {
		t.Error("the claim was touched")
	}
}

func TestSS06ADefinitionNearTheLimitArrivesAndNothingCarriesACopyOfItself(t *testing.T) {
	inModes(t, testSS06ADefinitionNearTheLimitArrivesAndNothingCarriesACopyOfItself)
}

func testSS06ADefinitionNearTheLimitArrivesAndNothingCarriesACopyOfItself(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-ss-06")
	words := strings.Repeat("x", 400000)
	render := func(big int) string {
		return configMap(ns, "big", "blob", strings.Repeat("y", big)) + strings.Replace(definition("ss06.example.test"),
			"{type: object}", "{type: object, description: "+words+"}", 1)
	}
	b.apply("ss06", ns, render(900000))
	crd := b.get(definitions, "", "boats.ss06.example.test")
	if !strings.Contains(fmt.Sprint(crd.Object["spec"]), words) {
		t.Error("the definition did not arrive whole")
	}
	for _, object := range []*unstructured.Unstructured{crd, b.get(configmaps, ns, "big")} {
		for key, value := range object.GetAnnotations() {
			if len(value) > 1000 {
				t.Errorf("annotation %s of %s has %d bytes", key, object.GetName(), len(value))
			}
		}
	}
	r := b.settled(b.accept(b.order("ss06", ns, render(1300000))))
	if r.Applied.Status != tunnel.False || len(r.Exceptions) != 1 || r.Exceptions[0].Name != "big" || len(r.Exceptions[0].Message) > 512 ||
		strings.Contains(r.Exceptions[0].Message, "yyyy") || !strings.Contains(r.Applied.Message, "1 of 2 objects refused, nothing applied") {
		t.Errorf("applied %+v, exceptions %+v", r.Applied, r.Exceptions)
	}
	if got := len(data(b.get(configmaps, ns, "big"), "blob")); got != 900000 {
		t.Errorf("%d bytes are left", got)
	}
}

func TestSS10AWebhookThatIsAwayLetsItsOwnRepairThroughAndGoesFirst(t *testing.T) {
	inModes(t, testSS10AWebhookThatIsAwayLetsItsOwnRepairThroughAndGoesFirst)
}

func testSS10AWebhookThatIsAwayLetsItsOwnRepairThroughAndGoesFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-ss-10")
	render := func(image string) string {
		return fmt.Sprintf(webhook, ns, "None") + configMap(ns, "guarded", "k", "1") + `
apiVersion: v1
kind: Service
metadata: {name: guard}
spec: {selector: {app: guard}, ports: [{port: 443, targetPort: 8443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: guard}
spec:
  replicas: 0
  selector: {matchLabels: {app: guard}}
  template:
    metadata: {labels: {app: guard}}
    spec:
      containers: [{name: c, image: "` + image + `"}]
`
	}
	// The object lies there before its webhook does: the backend has never been there.
	b.apply("ss10", ns, configMap(ns, "guarded", "k", "1"))
	b.apply("ss10", ns, render("example/guard:1"))
	changed := func(o string) string { return strings.Replace(o, `k: "1"`, `k: "2"`, 1) }
	// Not repaired, so that the webhook can be changed below.
	o := b.accept(b.order("ss10", ns, changed(render("example/guard:2")), func(o *tunnel.Order) { o.Policy.Automatic = false }))
	b.live(deployments, ns, "guard", "repaired", func(u *unstructured.Unstructured) bool {
		return strings.Contains(fmt.Sprint(u.Object["spec"]), "example/guard:2")
	})
	r := b.report("uid-ss10", "the guarded object waits for the webhook", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && strings.Contains(r.Applied.Message, "guard."+ns+".example.test")
	})
	for _, e := range r.Exceptions {
		if e.Name == "guarded" && e.Reason == "Drifted" {
			t.Errorf("what could not be applied counts as drift: %+v", e)
		}
	}
	// It is tried again until the backend answers; a webhook that lets all through is as good.
	b.edit(webhooks, "", ns, "operator", `{"webhooks":[{"name":"guard.`+ns+`.example.test","admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"Ignore",
	 "timeoutSeconds":1,"clientConfig":{"service":{"name":"guard","namespace":"`+ns+`"}}}]}`)
	b.live(configmaps, ns, "guarded", "applied", func(u *unstructured.Unstructured) bool { return data(u, "k") == "2" })
	before := b.calls.n.Load()
	b.accept(b.bare("ss10", tunnel.VerbRemove))
	b.report("uid-ss10", "removed", func(r tunnel.Report) bool { return r.Done })
	var deletes []string
	for _, call := range b.calls.since(before) {
		if strings.HasPrefix(call, "DELETE ") {
			deletes = append(deletes, call)
		}
	}
	if len(deletes) < 4 || !strings.Contains(deletes[0], "/validatingwebhookconfigurations/") {
		t.Errorf("deleted were %v", deletes)
	}
	for gvr, name := range map[schema.GroupVersionResource]string{configmaps: "guarded", deployments: "guard", services: "guard"} {
		b.gone(gvr, ns, name)
	}
	b.gone(webhooks, "", ns)
}

func TestOfManyObjectsThatAreRefusedEachIsCountedAndAsManyNamedAsAReportHolds(t *testing.T) {
	inModes(t, testOfManyObjectsThatAreRefusedEachIsCountedAndAsManyNamedAsAReportHolds)
}

func testOfManyObjectsThatAreRefusedEachIsCountedAndAsManyNamedAsAReportHolds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("refused-many")
	var render strings.Builder
	for i := range 70 {
		render.WriteString(configMap(ns, fmt.Sprintf("bad-%02d", i), "no key", "v"))
	}
	r := b.settled(b.accept(b.order("refused-many", ns, render.String()+configMap(ns, "good", "k", "v"))))
	if len(r.Exceptions) != 64 || r.More != 6 || r.Counts.Failed != 70 || r.Counts.Total != 71 || !strings.HasPrefix(r.Applied.Message, "70 of 71 objects refused, nothing applied: ") ||
		!strings.Contains(r.Applied.Message, "more") {
		t.Errorf("%d exceptions and %d more, counts %+v, applied %+v", len(r.Exceptions), r.More, r.Counts, r.Applied)
	}
	for _, e := range r.Exceptions {
		if e.Reason != "Rejected" || e.Kind != "ConfigMap" || !strings.Contains(e.Message, "data") {
			t.Errorf("exception %+v", e)
		}
	}
}
