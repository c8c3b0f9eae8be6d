// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/pkg/engine"
	"kumodo.io/convoy/pkg/health"
	"kumodo.io/convoy/pkg/tunnel"
)

// widgets are of a kind that nobody knows: there are no rules for it but a user's.
var widgets = schema.GroupVersionResource{Group: "health.example.test", Version: "v1", Resource: "widgets"}

const widgetDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.health.example.test}
spec:
  group: health.example.test
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// serveWidgets has the kind served on the plane of the test.
func (b *bench) serveWidgets() {
	b.t.Helper()
	raw, err := yaml.ToJSON([]byte(widgetDefinition))
	if err != nil {
		b.t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		b.t.Fatal(err)
	}
	_, err = b.plane.Dynamic().Resource(definitions).Create(b.ctx, object, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := harness.WaitServed(ctx, b.plane.Client().Discovery(), widgets.GroupVersion(), "widgets"); err != nil {
		b.t.Fatal(err)
	}
}

func widget(name string) string {
	return fmt.Sprintf("apiVersion: health.example.test/v1\nkind: Widget\nmetadata: {name: %s}\nspec: {a: 1}\n---\n", name)
}

// rules make an order name a layer of health rules.
func (b *bench) rules(rules ...health.Rule) option {
	b.t.Helper()
	raw, err := json.Marshal(health.Document{Rules: rules})
	if err != nil {
		b.t.Fatal(err)
	}
	layer := b.blobs.put(raw)
	return func(o *tunnel.Order) {
		o.Rules, o.Requires = layer, []string{tunnel.FeatureApply, tunnel.FeatureRules}
	}
}

func facts(pairs map[string]string) option {
	return func(o *tunnel.Order) { o.Facts = pairs }
}

// phased is a rule for widgets by status.phase.
var phased = health.Rule{
	Set: "apps/widgets", Group: "health.example.test", Kind: "Widget",
	Healthy:   `has(object.status) && object.status.phase == "Ready"`,
	Degraded:  `has(object.status) && object.status.phase == "Broken"`,
	Suspended: `has(object.status) && object.status.phase == "Held"`,
	Message:   `"phase is " + (has(object.status) ? object.status.phase : "not there")`,
}

func (b *bench) healthy(o tunnel.Order, status tunnel.Truth, reason, says string) tunnel.Report {
	b.t.Helper()
	return b.report(o.Release.UID, string(status)+" "+reason+" "+says, func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Healthy.Status == status && r.Healthy.Reason == reason && strings.Contains(r.Healthy.Message, says)
	})
}

func TestARuleOfAUserJudgesAKindThatNobodyKnows(t *testing.T) {
	inModes(t, testARuleOfAUserJudgesAKindThatNobodyKnows)
}

func testARuleOfAUserJudgesAKindThatNobodyKnows(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serveWidgets()
	ns := b.namespace("ruled")
	late := strings.Replace(configMap(ns, "late", "k", "v"), "metadata: {", `metadata: {annotations: {convoy.kumodo.io/sync-wave: "1"}, `, 1)
	o := b.accept(b.order("ruled", ns, widget("one")+late, b.rules(phased)))
	// The next wave waits for what the rule says.
	b.report(o.Release.UID, "blocked by the widget", func(r tunnel.Report) bool {
		return r.Applied.Reason == "Blocked" && strings.Contains(r.Applied.Message, "phase is not there")
	})
	if _, err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Get(b.ctx, "late", metav1.GetOptions{}); err == nil {
		t.Error("the next wave did not wait")
	}
	b.edit(widgets, ns, "one", "controller", `{"status":{"phase":"Ready"}}`)
	b.applied(o)
	b.get(configmaps, ns, "late")
	b.edit(widgets, ns, "one", "controller", `{"status":{"phase":"Broken"}}`)
	r := b.healthy(o, tunnel.False, "Degraded", "phase is Broken")
	if len(r.Exceptions) != 1 || r.Exceptions[0].Reason != "Degraded" || r.Exceptions[0].Name != "one" {
		t.Errorf("exceptions are %+v", r.Exceptions)
	}
	b.edit(widgets, ns, "one", "controller", `{"status":{"phase":"Held"}}`)
	b.healthy(o, tunnel.Unknown, "Suspended", "phase is Held")
	b.edit(widgets, ns, "one", "controller", `{"status":{"phase":"Working"}}`)
	b.healthy(o, tunnel.False, "Progressing", "phase is Working")
	// A restart knows the rules, also while the hub is away.
	b.blobs.setAway(true)
	b.restart()
	b.healthy(o, tunnel.False, "Progressing", "phase is Working")
	b.edit(widgets, ns, "one", "controller", `{"status":{"phase":"Broken"}}`)
	b.healthy(o, tunnel.False, "Degraded", "phase is Broken")
}

// TestHL03 beside: the first rule that selects an object decides, before built-in ones; by
// them an Ingress without an address is healthy.
func TestHL03TheFirstRuleDecidesBeforeTheBuiltInOnes(t *testing.T) {
	inModes(t, testHL03TheFirstRuleDecidesBeforeTheBuiltInOnes)
}

const ingress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: door}
spec: {rules: [{host: a.example.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]}}]}
---
`

func testHL03TheFirstRuleDecidesBeforeTheBuiltInOnes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serveWidgets()
	ns := b.namespace("first")
	addressed := health.Rule{
		Set: "addresses", Group: "networking.k8s.io", Kind: "Ingress",
		Healthy: `has(object.status.loadBalancer.ingress)`, Message: `"no address in " + cluster.region`,
	}
	lenient := health.Rule{Set: "apps/lenient", Group: "networking.k8s.io", Kind: "*", Healthy: "true"}
	documents := ingress + widget("one")
	b.apply("first", ns, documents) // by no rule: an Ingress never waits, and nothing is known of a widget
	o := b.accept(b.order("first", ns, documents, b.rules(addressed, lenient), facts(map[string]string{"cluster.region": "eu"})))
	b.healthy(o, tunnel.False, "Progressing", "no address in eu")
	// What a rule reads of the Cluster has changed.
	o = b.accept(b.order("first", ns, documents, b.rules(addressed, lenient), facts(map[string]string{"cluster.region": "us"})))
	b.healthy(o, tunnel.False, "Progressing", "no address in us")
	// The other order of precedence.
	o = b.accept(b.order("first", ns, documents, b.rules(lenient, addressed)))
	b.healthy(o, tunnel.True, "Healthy", "")
	o = b.accept(b.order("first", ns, documents, b.rules(addressed)))
	b.healthy(o, tunnel.False, "Progressing", "health rule addresses for Ingress") // its message reads a fact that is not there
	// Without rules all is as in the beginning.
	b.apply("first", ns, documents)
}

func TestHL07ARuleThatFailsSaysSoForItsObjectAlone(t *testing.T) {
	inModes(t, testHL07ARuleThatFailsSaysSoForItsObjectAlone)
}

func testHL07ARuleThatFailsSaysSoForItsObjectAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serveWidgets()
	ns := b.namespace("odd")
	careless := health.Rule{
		Set: "apps/careless", Group: "health.example.test", Kind: "Widget",
		Healthy: `object.status.phase == "Ready" && object.status.conditions.exists(c, c.type == "Ready" && c.status == "True")`,
	}
	broken := health.Rule{Set: "apps/broken", Kind: "ConfigMap", Healthy: `objekt.data.k == "v"`}
	o := b.accept(b.order("odd", ns, widget("fine")+widget("text")+widget("map")+configMap(ns, "cm", "k", "v"), b.rules(careless, broken)))
	b.live(widgets, ns, "map", "there", func(*unstructured.Unstructured) bool { return true })
	b.edit(widgets, ns, "fine", "controller", `{"status":{"phase":"Ready","conditions":[{"type":"Ready","status":"True"}]}}`)
	b.edit(widgets, ns, "text", "controller", `{"status":"running"}`)
	b.edit(widgets, ns, "map", "controller", `{"status":{"phase":"Ready","conditions":{"Ready":true}}}`)
	want := map[string]string{"text": "apps/careless for Widget fails: healthy", "map": "apps/careless for Widget fails: healthy", "cm": "apps/broken for ConfigMap fails: healthy"}
	r := b.report(o.Release.UID, "Unknown for three objects", func(r tunnel.Report) bool {
		return r.Applied.Status == tunnel.True && len(r.Exceptions) == len(want) && r.Counts.Healthy == 1
	})
	for _, e := range r.Exceptions {
		if e.Reason != "Unknown" || want[e.Name] == "" || !strings.Contains(e.Message, want[e.Name]) {
			t.Errorf("exception %+v, want Unknown that says %q", e, want[e.Name])
		}
	}
	if r.Healthy.Status != tunnel.Unknown || r.InSync.Status != tunnel.True {
		t.Errorf("healthy is %+v, in sync %+v", r.Healthy, r.InSync)
	}
}

// TestNewRulesWriteNothing: an order that differs by its rules alone judges what is there
// anew, and changes no object: the API server's audit log is the witness.
func TestNewRulesWriteNothing(t *testing.T) { inModes(t, testNewRulesWriteNothing) }

func testNewRulesWriteNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serveWidgets()
	ns := b.namespace("rejudged")
	documents := widget("one") + widget("two") + configMap(ns, "cm", "k", "v")
	b.apply("rejudged", ns, documents)
	before, n := time.Now(), int64(len(b.calls.since(0)))
	o := b.accept(b.order("rejudged", ns, documents, b.rules(phased)))
	b.healthy(o, tunnel.False, "Progressing", "phase is not there")
	b.applied(b.accept(b.order("rejudged", ns, documents, b.rules(health.Rule{Set: "apps/all", Group: "health.example.test", Kind: "Widget", Healthy: "true"}))))
	var reads int
	for _, call := range b.calls.since(n) {
		switch {
		case strings.HasPrefix(call, http.MethodGet) && strings.Contains(call, "/widgets/"):
			reads++
		case strings.Contains(call, "/namespaces/"+ns):
			t.Errorf("%s was asked", call)
		}
	}
	if reads != 4 {
		t.Errorf("widgets were read %d times, want each once for each order", reads)
	}
	for event, err := range harness.Audit(b.plane.AuditLog(), harness.Since(before), harness.WithVerb("create", "update", "patch", "delete", "deletecollection")) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Object.Namespace == ns {
			t.Errorf("%s of %s %s by %s", event.Verb, event.Object.Resource, event.Object.Name, event.UserAgent)
		}
	}
}

// TestOtherRulesLeaveWhatIsAppliedApplied: whatever they find of the first wave, the second
// stays applied, and so does the Release.
func TestOtherRulesLeaveWhatIsAppliedApplied(t *testing.T) {
	inModes(t, testOtherRulesLeaveWhatIsAppliedApplied)
}

func testOtherRulesLeaveWhatIsAppliedApplied(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serveWidgets()
	ns := b.namespace("leftapplied")
	documents := widget("one") + strings.Replace(configMap(ns, "late", "k", "v"), "metadata: {", `metadata: {annotations: {convoy.kumodo.io/sync-wave: "1"}, `, 1)
	b.apply("leftapplied", ns, documents)
	kind := func(rule health.Rule) option {
		rule.Set, rule.Group, rule.Kind = "apps/x", "health.example.test", "Widget"
		return b.rules(rule)
	}
	brief := func(o *tunnel.Order) { o.Policy.TimeoutSeconds = 1 }
	cases := []struct {
		name    string
		options []option
		status  tunnel.Truth
		reason  string
	}{
		{"a rule that fails", []option{kind(health.Rule{Healthy: "object.status.phase == 'Up'"})}, tunnel.Unknown, "Unknown"},
		{"a rule that waits", []option{kind(health.Rule{Healthy: "false"})}, tunnel.False, "Progressing"},
		{"a rule that says Degraded", []option{kind(health.Rule{Degraded: "true"})}, tunnel.False, "Degraded"},
		{"other terms under that rule", []option{kind(health.Rule{Degraded: "true"}), func(o *tunnel.Order) { o.Policy.Automatic = false }}, tunnel.False, "Degraded"},
		{"no rules any more", nil, tunnel.True, "Healthy"},
	}
	for _, c := range cases {
		o := b.accept(b.order("leftapplied", ns, documents, append(c.options, brief)...))
		bad := ""
		r := b.report(o.Release.UID, c.name+": the end of its operation", func(r tunnel.Report) bool {
			if r.Sequence != o.Sequence {
				return false
			}
			if r.Applied.Status != tunnel.True || r.InSync.Status != tunnel.True {
				bad = fmt.Sprintf("applied %+v, in sync %+v", r.Applied, r.InSync)
			}
			return r.Settled && r.Operation != nil && r.Operation.Sequence == o.Sequence && r.Operation.FinishedAt != nil
		})
		if bad != "" {
			t.Errorf("%s: %s", c.name, bad)
		}
		if r.Healthy.Status != c.status || r.Healthy.Reason != c.reason {
			t.Errorf("%s: healthy is %+v", c.name, r.Healthy)
		}
	}
}

// TestRulesAreExchangedWhileADeletionWaits: what was said by the old ones is said no more.
func TestRulesAreExchangedWhileADeletionWaits(t *testing.T) {
	inModes(t, testRulesAreExchangedWhileADeletionWaits)
}

func testRulesAreExchangedWhileADeletionWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serveWidgets()
	ns := b.namespace("exchanged")
	stuck := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stuck, finalizers: [exchanged.example.test/hold]}\n---\n"
	b.apply("exchanged", ns, widget("one")+stuck)
	ruled := b.rules(health.Rule{Set: "apps/x", Group: "health.example.test", Kind: "Widget", Suspended: "true", Message: "'by a set that goes'"})
	o := b.accept(b.order("exchanged", ns, widget("one")+stuck, ruled))
	b.healthy(o, tunnel.Unknown, "Suspended", "by a set that goes")
	says := func(r tunnel.Report, reason string) bool {
		return slices.ContainsFunc(r.Exceptions, func(e tunnel.Exception) bool { return e.Reason == reason })
	}
	o = b.accept(b.order("exchanged", ns, widget("one"), ruled))
	b.report(o.Release.UID, "that a deletion waits, judged by the set", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && says(r, "Terminating") && says(r, "Suspended")
	})
	o = b.accept(b.order("exchanged", ns, widget("one")))
	r := b.report(o.Release.UID, "that a deletion waits, judged by no set", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && says(r, "Terminating") && !says(r, "Suspended")
	})
	if r.Applied.Status == tunnel.True {
		t.Errorf("applied is %+v while the deletion waits", r.Applied)
	}
	b.edit(configmaps, ns, "stuck", "owner", `{"metadata":{"finalizers":null}}`)
	b.applied(o)
}

// TestRulesThatCannotBeHadHoldTheirOrderBack: what runs stays judged and enforced as it is.
func TestRulesThatCannotBeHadHoldTheirOrderBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("lostrules")
	b.apply("lostrules", ns, configMap(ns, "cm", "k", "old"))
	b.blobs.setAway(true)
	o := b.accept(b.order("lostrules", ns, configMap(ns, "cm", "k", "new"), b.rules(health.Rule{Set: "all", Kind: "ConfigMap", Degraded: `object.data.k == "new"`, Message: `"it is new"`})))
	b.report(o.Release.UID, "that a layer is not there", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Applied.Status == tunnel.Unknown && strings.Contains(r.Applied.Message, "away")
	})
	if got := data(b.get(configmaps, ns, "cm"), "k"); got != "old" {
		t.Errorf("k is %s", got)
	}
	b.blobs.setAway(false)
	b.report(o.Release.UID, "degraded by the rule", func(r tunnel.Report) bool {
		return r.Applied.Status == tunnel.True && r.Healthy.Reason == "Degraded" && strings.Contains(r.Healthy.Message, "it is new")
	})
	if got := data(b.get(configmaps, ns, "cm"), "k"); got != "new" {
		t.Errorf("k is %s", got)
	}
}

// TestASuspendedReleaseIsJudgedByNewRules: to judge is not to apply.
func TestASuspendedReleaseIsJudgedByNewRules(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("heldstill")
	b.apply("heldstill", ns, configMap(ns, "cm", "k", "v"))
	before := b.get(configmaps, ns, "cm").GetResourceVersion()
	rule := health.Rule{Set: "all", Kind: "ConfigMap", Degraded: `object.data.k == "v"`, Message: `"k is v"`}
	o := b.accept(b.order("heldstill", ns, configMap(ns, "cm", "k", "v"), b.rules(rule), func(o *tunnel.Order) { o.Policy.Suspended = true }))
	b.healthy(o, tunnel.False, "Degraded", "k is v")
	if after := b.get(configmaps, ns, "cm").GetResourceVersion(); after != before {
		t.Error("the object was changed")
	}
}

// TestRulesThatNoOrderNamesAreNotKept, and are given back to a hub that lost them while one
// does.
func TestRulesThatNoOrderNamesAreNotKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("tidied")
	o, _ := b.apply("tidied", ns, configMap(ns, "cm", "k", "v"), b.rules(health.Rule{Set: "all", Kind: "ConfigMap", Healthy: "true"}))
	from, size, err := b.runner.Layer(b.ctx, o.Rules.Digest)
	if err != nil || size != o.Rules.Size {
		t.Fatalf("the layer is not given back: %d bytes, %v", size, err)
	}
	var got bytes.Buffer
	if _, err := got.ReadFrom(from); err != nil || int64(got.Len()) != size {
		t.Errorf("%d bytes came back, %v", got.Len(), err)
	}
	if err := from.Close(); err != nil {
		t.Error(err)
	}
	b.apply("tidied", ns, configMap(ns, "cm", "k", "v"))
	err = wait.PollUntilContextTimeout(b.ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		kept, err := b.state.OpenRender(ctx, o.Rules.Digest)
		if errors.Is(err, engine.ErrNotStored) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		return false, kept.Close()
	})
	if err != nil {
		t.Errorf("the layer is still kept: %v", err)
	}
}

// TestHL04AClaimThatWaitsForItsConsumerHoldsNobodyUp is the second half of the case.
func TestHL04AClaimThatWaitsForItsConsumerHoldsNobodyUp(t *testing.T) {
	inModes(t, testHL04AClaimThatWaitsForItsConsumerHoldsNobodyUp)
}

func testHL04AClaimThatWaitsForItsConsumerHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-hl-04")
	o := b.accept(b.order("hl-04", ns, `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: hl04-later, annotations: {convoy.kumodo.io/sync-wave: "-1"}}
provisioner: disk.example.test
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, annotations: {convoy.kumodo.io/sync-wave: "0"}}
spec: {storageClassName: hl04-later, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: user, annotations: {convoy.kumodo.io/sync-wave: "1"}}
spec:
  selector: {matchLabels: {app: user}}
  template:
    metadata: {labels: {app: user}}
    spec:
      nodeSelector: {nowhere: "true"}
      containers: [{name: c, image: "example/app:1"}]
      volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]
---
`))
	r := b.report(o.Release.UID, "applied, with the claim pending", func(r tunnel.Report) bool {
		return r.Applied.Status == tunnel.True && len(r.Exceptions) == 2
	})
	b.get(deployments, ns, "user")
	i := slices.IndexFunc(r.Exceptions, func(e tunnel.Exception) bool { return e.Name == "data" })
	if i < 0 || r.Exceptions[i].Reason != "Progressing" || !strings.Contains(r.Exceptions[i].Message, "waits for its first consumer") {
		t.Errorf("exceptions are %+v, want the claim to wait for its first consumer", r.Exceptions)
	}
	if r.Healthy.Reason != "Progressing" {
		t.Errorf("healthy is %+v", r.Healthy)
	}
}
