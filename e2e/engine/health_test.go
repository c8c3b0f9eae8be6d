// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"kumodo.io/convoy/e2e/harness"
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
