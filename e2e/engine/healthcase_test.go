// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/json"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"kumodo.io/convoy/pkg/tunnel"
)

// judged orders documents and waits until each object has the state that it should
// have, and all of them are applied and in sync.
func (b *bench) judged(release, ns, documents string, want map[string]string) {
	b.t.Helper()
	o := b.accept(b.order(release, ns, documents))
	b.report(o.Release.UID, fmt.Sprintf("applied, with %v", want), func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Applied.Status == tunnel.True && r.InSync.Status == tunnel.True && stands(r, want)
	})
}

// stands says whether a report tells of each object what is wanted: those that are not
// healthy are in its exceptions.
func stands(r tunnel.Report, want map[string]string) bool {
	told := map[string]string{}
	for _, e := range r.Exceptions {
		told[e.Name] = e.Reason
	}
	for name, state := range want {
		if state == "Healthy" {
			state = ""
		}
		if told[name] != state {
			return false
		}
	}
	return true
}

func TestHL01AStatusOfAnOlderGenerationIsProgressingWhateverElseItSays(t *testing.T) {
	inModes(t, testHL01AStatusOfAnOlderGenerationIsProgressingWhateverElseItSays)
}

func testHL01AStatusOfAnOlderGenerationIsProgressingWhateverElseItSays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serveWidgets()
	ns := b.namespace("t-hl-01")
	o, _ := b.apply("hl01", ns, widget("all")+widget("one"))
	// Every write of a widget is a generation of its own.
	ready := func(name, format string) {
		t.Helper()
		next := b.get(widgets, ns, name).GetGeneration() + 1
		b.edit(widgets, ns, name, "controller", fmt.Sprintf(format, next))
	}
	told := func(what string, want map[string]string) {
		t.Helper()
		b.report(o.Release.UID, what, func(r tunnel.Report) bool { return r.InSync.Status == tunnel.True && stands(r, want) })
	}
	const whole = `{"status":{"observedGeneration":%d,"conditions":[{"type":"Ready","status":"True"}]}}`
	const single = `{"status":{"conditions":[{"type":"Ready","status":"True","observedGeneration":%d}]}}`
	b.edit(widgets, ns, "all", "controller", fmt.Sprintf(whole, 1))
	b.edit(widgets, ns, "one", "controller", fmt.Sprintf(single, 1))
	told("both speak of an older generation", map[string]string{"all": "Progressing", "one": "Progressing"})
	ready("all", whole)
	ready("one", single)
	told("both speak of this one", map[string]string{"all": "Healthy", "one": "Healthy"})
}

func TestHL03OnlyALoadBalancerWaitsForAnAddress(t *testing.T) {
	inModes(t, testHL03OnlyALoadBalancerWaitsForAnAddress)
}

func testHL03OnlyALoadBalancerWaitsForAnAddress(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-hl-03")
	service := func(name, spec string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n---\n"
	}
	const ports = "selector: {app: a}, ports: [{port: 80}]"
	b.judged("hl03", ns, service("lb", "type: LoadBalancer, "+ports)+service("plain", ports)+service("headless", "clusterIP: None, "+ports)+
		service("outside", "type: ExternalName, externalName: a.example.test")+ingress,
		map[string]string{"lb": "Progressing", "plain": "Healthy", "headless": "Healthy", "outside": "Healthy", "door": "Healthy"})
	_, err := b.plane.Dynamic().Resource(services).Namespace(ns).Patch(b.ctx, "lb", types.MergePatchType,
		[]byte(`{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`), metav1.PatchOptions{FieldManager: "cloud"}, "status")
	if err != nil {
		t.Fatal(err)
	}
	b.report("uid-hl03", "all healthy", func(r tunnel.Report) bool { return r.Settled && r.Healthy.Status == tunnel.True })
}

func TestHL06WhatIsPausedEmptyLateOrRefusedHasItsOwnState(t *testing.T) {
	inModes(t, testHL06WhatIsPausedEmptyLateOrRefusedHasItsOwnState)
}

func testHL06WhatIsPausedEmptyLateOrRefusedHasItsOwnState(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns, full := b.namespace("t-hl-06"), b.namespace("t-hl-06-full")
	quota := "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: none}\nspec: {hard: {pods: \"0\"}}\n"
	if _, err := b.plane.KubectlInput(b.ctx, quota, "create", "-n", full, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	b.live(schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}, full, "none", "counted", func(u *unstructured.Unstructured) bool {
		_, there, err := unstructured.NestedString(u.Object, "status", "hard", "pods")
		return err == nil && there
	})
	deployment := func(ns, name, spec, pod string) string {
		return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: %s}
spec:
  %s
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {%[4]s containers: [{name: c, image: "example/app:1"}]}
---
`, name, ns, spec, pod)
	}
	const nowhere = `nodeSelector: {nowhere: "true"},`
	b.judged("hl06", ns, deployment(ns, "paused", "paused: true", nowhere)+deployment(ns, "zero", "replicas: 0", "")+
		deployment(ns, "late", "progressDeadlineSeconds: 1", nowhere)+deployment(full, "refused", "replicas: 1", ""),
		map[string]string{"paused": "Suspended", "zero": "Healthy", "late": "Degraded", "refused": "Degraded"})
}

func TestHL07NoOddShapeOfAStatusStopsItsReleaseOrAnother(t *testing.T) {
	inModes(t, testHL07NoOddShapeOfAStatusStopsItsReleaseOrAnother)
}

func testHL07NoOddShapeOfAStatusStopsItsReleaseOrAnother(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serveWidgets()
	ns := b.namespace("t-hl-07")
	want := map[string]string{"not-ready": "Progressing", "cm": "Healthy"}
	documents := configMap(ns, "cm", "k", "v") + widget("not-ready")
	shapes := []string{"no-status", "empty-status", "status-is-text", "conditions-is-map", "conditions-null", "boolean-status"}
	for _, step := range shapes {
		want[step] = "Healthy"
		documents += widget(step)
	}
	o, _ := b.apply("hl07", ns, documents)
	for _, step := range append(shapes, "not-ready") {
		raw, err := yaml.ToJSON([]byte(caseRender(t, "HL-07", step)))
		if err != nil {
			t.Fatal(err)
		}
		var object struct {
			Status any `json:"status"`
		}
		if err := json.Unmarshal(raw, &object); err != nil {
			t.Fatal(err)
		}
		if object.Status != nil {
			b.edit(widgets, ns, step, "controller", mustText(t, map[string]any{"status": object.Status}))
		}
	}
	b.report(o.Release.UID, "one that is not ready", func(r tunnel.Report) bool {
		return r.Counts.Healthy == int32(len(want)-1) && r.InSync.Status == tunnel.True && r.Healthy.Reason == "Progressing" && stands(r, want)
	})
}
