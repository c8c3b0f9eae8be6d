// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestARejectedRenderNamesEveryObjectAppliesNothingAndTheOldOneIsEnforced(t *testing.T) {
	inModes(t, testARejectedRenderNamesEveryObjectAppliesNothingAndTheOldOneIsEnforced)
}

func testARejectedRenderNamesEveryObjectAppliesNothingAndTheOldOneIsEnforced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("rejected")
	b.apply("rejected", ns, configMap(ns, "one", "k", "v"))
	o := b.accept(b.order("rejected", ns, configMap(ns, "one", "k", "v2")+configMap(ns, "two", "k", "v2")+`
apiVersion: v1
kind: Service
metadata: {name: bad}
spec: {ports: [{port: 99999}]}
---
apiVersion: nowhere.example.test/v1
kind: Ghost
metadata: {name: g}
---
`+configMap("rejected-missing", "lost", "k", "v")))
	r := b.settled(o)
	if r.Applied.Status != tunnel.False || r.Applied.Reason != "DryRunFailed" {
		t.Fatalf("applied is %+v", r.Applied)
	}
	for _, name := range []string{"Service rejected/bad", "Ghost", "ConfigMap rejected-missing/lost"} {
		if !strings.Contains(r.Applied.Message, name) {
			t.Errorf("the message does not name %s: %s", name, r.Applied.Message)
		}
	}
	if len(r.Exceptions) != 3 || r.InSync.Status == tunnel.True {
		t.Errorf("exceptions are %+v, in sync %+v", r.Exceptions, r.InSync)
	}
	if _, err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Get(b.ctx, "two", metav1.GetOptions{}); err == nil {
		t.Error("an object of the rejected render was applied")
	}
	if data(b.get(configmaps, ns, "one"), "k") != "v" {
		t.Error("an object of the old render was changed")
	}
	b.edit(configmaps, ns, "one", "somebody", `{"data":{"k":"edited"}}`)
	b.live(configmaps, ns, "one", "healed to the old render", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v" })
}

// everything is the render of SS-07: the custom resource stands first, its
// definition and its namespace last.
func everything(ns string) string {
	return fmt.Sprintf(`
apiVersion: %[1]s.example.test/v1
kind: Widget
metadata: {name: first, namespace: %[1]s}
spec: {size: 3}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: run, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: run}
subjects: [{kind: ServiceAccount, name: run, namespace: %[1]s}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: run, namespace: %[1]s}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: run, namespace: %[1]s}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s.example.test}
spec:
  group: %[1]s.example.test
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer}}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
`, ns)
}

func TestSS07EverythingInOneRenderNeedsOneSync(t *testing.T) {
	inModes(t, testSS07EverythingInOneRenderNeedsOneSync)
}

func testSS07EverythingInOneRenderNeedsOneSync(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, _ := b.apply("ss07", "ss07", everything("ss07"))
	widgets := schema.GroupVersionResource{Group: "ss07.example.test", Version: "v1", Resource: "widgets"}
	six := func() string {
		t.Helper()
		var uids []string
		for _, o := range []struct {
			gvr      schema.GroupVersionResource
			ns, name string
		}{
			{namespaces, "", "ss07"}, {definitions, "", "widgets.ss07.example.test"}, {widgets, "ss07", "first"},
			{schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, "ss07", "run"},
			{schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}, "ss07", "run"},
			{schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}, "ss07", "run"},
		} {
			got := b.get(o.gvr, o.ns, o.name)
			if got.GetDeletionTimestamp() != nil {
				t.Errorf("%s %s is being deleted", o.gvr.Resource, o.name)
			}
			uids = append(uids, string(got.GetUID()))
		}
		return strings.Join(uids, " ")
	}
	live := six()
	b.mu.Lock()
	for _, r := range b.all {
		if r.Sequence == first.Sequence && r.Applied.Status == tunnel.False {
			t.Errorf("a report on the way says %+v", r.Applied)
		}
	}
	b.mu.Unlock()
	o := b.accept(b.order("ss07", "ss07", everything("ss07")+`
apiVersion: nowhere.example.test/v1
kind: Ghost
metadata: {name: g, namespace: ss07}
---
`+configMap("ss07-missing", "lost", "k", "v")))
	r := b.settled(o)
	reasons := map[string]string{}
	for _, e := range r.Exceptions {
		reasons[e.Kind] = e.Message
	}
	if !strings.Contains(reasons["Ghost"], "does not serve") || !strings.Contains(reasons["ConfigMap"], "ss07-missing") {
		t.Errorf("exceptions are %+v", r.Exceptions)
	}
	if len(r.Exceptions) != 2 || r.Counts.Drifted != 0 {
		t.Errorf("of those that were there something is told: %+v, %+v", r.Exceptions, r.Counts)
	}
	if now := six(); now != live {
		t.Errorf("the six are %s, and were %s", now, live)
	}
}

const webhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: guard.%[1]s.example.test
  admissionReviewVersions: [v1]
  sideEffects: %[2]s
  failurePolicy: Fail
  timeoutSeconds: 2
  clientConfig: {service: {name: guard, namespace: %[1]s}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE, DELETE], resources: [configmaps]}]
---
`

var webhooks = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}

func TestSS10AWebhookThatIsAwayHoldsUpNothingElse(t *testing.T) {
	inModes(t, testSS10AWebhookThatIsAwayHoldsUpNothingElse)
}

func testSS10AWebhookThatIsAwayHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("ss10")
	service := `
apiVersion: v1
kind: Service
metadata: {name: guard}
spec: {selector: {app: guard}, ports: [{port: 443, targetPort: 8443}]}
---
`
	b.apply("ss10", ns, fmt.Sprintf(webhook, ns, "None")+service)
	o := b.accept(b.order("ss10", ns, fmt.Sprintf(webhook, ns, "None")+service+configMap(ns, "guarded", "k", "1")+`
apiVersion: v1
kind: Service
metadata: {name: other}
spec: {selector: {app: other}, ports: [{port: 80}]}
`))
	b.live(services, ns, "other", "applied", func(*unstructured.Unstructured) bool { return true })
	r := b.report("uid-ss10", "the guarded object waits", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Applied.Reason == "Blocked" && strings.Contains(r.Applied.Message, "guard.ss10.example.test")
	})
	if r.Applied.Status != tunnel.Unknown {
		t.Errorf("applied is %+v", r.Applied)
	}
	remove := b.bare("ss10", tunnel.VerbRemove)
	b.accept(remove)
	b.report("uid-ss10", "removed", func(r tunnel.Report) bool { return r.Done })
	b.gone(webhooks, "", ns)
	b.gone(services, ns, "guard")
}

func TestAWebhookThatDeniesRejectsTheRender(t *testing.T) {
	inModes(t, testAWebhookThatDeniesRejectsTheRender)
}

func testAWebhookThatDeniesRejectsTheRender(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("denied")
	policy := `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: denied}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: denied}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  validations: [{expression: "object.metadata.name != 'forbidden'", message: "not this name"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: denied}
spec: {policyName: denied, validationActions: [Deny]}
`
	b.apply("denied-policy", ns, policy)
	b.report("uid-denied-policy", "applied", func(r tunnel.Report) bool { return r.Settled })
	var r tunnel.Report
	for i := range 50 { // the policy takes a moment to hold
		release := fmt.Sprintf("denied-%d", i)
		o := b.accept(b.order(release, ns, configMap(ns, "forbidden", "k", "v")+configMap(ns, "fine", "k", "v")))
		if r = b.settled(o); r.Applied.Reason == "DryRunFailed" {
			break
		}
		b.accept(b.bare(release, tunnel.VerbRemove))
		b.report("uid-"+release, "removed", func(r tunnel.Report) bool { return r.Done })
	}
	if r.Applied.Reason != "DryRunFailed" || !strings.Contains(r.Applied.Message, "not this name") {
		t.Errorf("applied is %+v", r.Applied)
	}
	if _, err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Get(b.ctx, "fine", metav1.GetOptions{}); err == nil {
		t.Error("an object of the rejected render was applied")
	}
}

func TestSS01ADoubledListKeyIsARejectionThatNamesIt(t *testing.T) {
	inModes(t, testSS01ADoubledListKeyIsARejectionThatNamesIt)
}

func testSS01ADoubledListKeyIsARejectionThatNamesIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("ss01")
	deployment := func(image, env string) string {
		return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: twice}
spec:
  replicas: 0
  selector: {matchLabels: {app: twice}}
  template:
    metadata: {labels: {app: twice}}
    spec:
      containers:
      - {name: c, image: "` + image + `", env: [` + env + `]}
---
`
	}
	b.apply("ss01", ns, deployment("example/app:1", "{name: MODE, value: two}"))
	o := b.accept(b.order("ss01", ns, deployment("example/app:2", "{name: MODE, value: one}, {name: MODE, value: two}")+configMap(ns, "neighbour", "k", "v")))
	r := b.settled(o)
	if r.Applied.Reason != "DryRunFailed" || !strings.Contains(r.Applied.Message, "MODE") || !strings.Contains(r.Applied.Message, "Deployment ss01/twice") {
		t.Errorf("applied is %+v", r.Applied)
	}
	if !strings.Contains(r.Applied.Message, "nothing applied") {
		t.Errorf("the fate of the neighbour is not stated: %s", r.Applied.Message)
	}
}

func TestPR06AnEmptyRenderIsNeverApplied(t *testing.T) {
	inModes(t, testPR06AnEmptyRenderIsNeverApplied)
}

func testPR06AnEmptyRenderIsNeverApplied(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("pr06")
	b.apply("pr06", ns, configMap(ns, "one", "k", "v")+`apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`)
	before, claim := b.get(configmaps, ns, "one"), b.get(claims, ns, "data")
	o := b.accept(b.order("pr06", ns, "# all gone\n---\n# still nothing\n"))
	r := b.settled(o)
	if r.Applied.Status != tunnel.False || r.Applied.Reason != "EmptyRender" {
		t.Errorf("applied is %+v", r.Applied)
	}
	if after := b.get(configmaps, ns, "one"); after.GetUID() != before.GetUID() {
		t.Error("the object was made anew")
	}
	if after := b.get(claims, ns, "data"); after.GetUID() != claim.GetUID() || after.GetDeletionTimestamp() != nil {
		t.Error("the claim was touched")
	}
	b.edit(configmaps, ns, "one", "somebody", `{"data":{"k":"edited"}}`)
	b.live(configmaps, ns, "one", "still enforced", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v" })
	// With the permission it prunes all.
	if _, r = b.apply("pr06", ns, "# all gone\n", func(o *tunnel.Order) { o.Policy.AllowEmpty = true }); r.Counts.Total != 0 || len(b.inventory("uid-pr06")) != 0 {
		t.Errorf("left are %+v, %+v", r.Counts, r.Inventory)
	}
	b.gone(configmaps, ns, "one")
	b.gone(claims, ns, "data")
}

func TestARenderThatIsNotWhatWasOrderedIsRefused(t *testing.T) {
	inModes(t, testARenderThatIsNotWhatWasOrderedIsRefused)
}

func testARenderThatIsNotWhatWasOrderedIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("refused")
	b.apply("refused", ns, configMap(ns, "one", "k", "v"))
	o := b.order("refused", ns, configMap(ns, "one", "k", "v2"))
	raw := b.blobs.content[o.Objects.Digest]
	raw[len(raw)/2] ^= 1
	b.accept(o)
	r := b.settled(o)
	if r.Applied.Status != tunnel.False || r.Applied.Reason != "RenderRefused" {
		t.Errorf("applied is %+v", r.Applied)
	}
	if data(b.get(configmaps, ns, "one"), "k") != "v" {
		t.Error("the object was changed")
	}
}
