// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"kumodo.io/convoy/pkg/tunnel"
)

var (
	scalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
	events  = schema.GroupVersionResource{Version: "v1", Resource: "events"}
)

// deleted watches a kind in a namespace. What it returns stops that, and gives what was
// deleted.
func (b *bench) deleted(gvr schema.GroupVersionResource, ns string) (stop func() []string) {
	b.t.Helper()
	w, err := b.plane.Dynamic().Resource(gvr).Namespace(ns).Watch(b.ctx, metav1.ListOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	done := make(chan []string, 1)
	go func() {
		var names []string
		for event := range w.ResultChan() {
			if u, ok := event.Object.(*unstructured.Unstructured); ok && event.Type == watch.Deleted {
				names = append(names, u.GetName())
			}
		}
		done <- names
	}()
	return func() []string {
		w.Stop()
		return <-done
	}
}

// listed counts how often the inventory of a Release has a name.
func (b *bench) listed(uid, name string) int {
	b.t.Helper()
	all, _, err := b.detail(uid, tunnel.LiveDiff)
	if err != nil {
		b.t.Fatal(err)
	}
	n := 0
	for _, o := range all {
		if o.Name == name {
			n++
		}
	}
	return n
}

const pr01 = `
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: NS}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 4
  targetCPUUtilizationPercentage: 70
---
apiVersion: v1
kind: Event
metadata: {name: note, namespace: NS}
involvedObject: {kind: Namespace, name: NS, namespace: NS}
reason: Noted
type: Normal
message: hello
~
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: NS}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 5
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}]
---
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: note, namespace: NS, labels: {rev: "2"}}
`

func TestPR01AnObjectThatMovesToAnotherVersionOrGroupIsTheSameObject(t *testing.T) {
	inModes(t, testPR01AnObjectThatMovesToAnotherVersionOrGroupIsTheSameObject)
}

func testPR01AnObjectThatMovesToAnotherVersionOrGroupIsTheSameObject(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-pr-01")
	old, moved, _ := strings.Cut(strings.ReplaceAll(pr01, "NS", ns), "~")
	inSync := func(documents string) {
		t.Helper()
		o := b.accept(b.order("pr01", ns, documents))
		b.report("uid-pr01", "applied and in sync", func(r tunnel.Report) bool {
			return r.Sequence == o.Sequence && r.Settled && r.Applied.Status == tunnel.True && r.InSync.Status == tunnel.True
		})
	}
	inSync(old)
	scaler, note := b.get(scalers, ns, "web"), b.get(events, ns, "note")
	scalersGone, eventsGone := b.deleted(scalers, ns), b.deleted(events, ns)
	// Drift that is not repaired yet when the render moves on is brought back in the
	// version that the object was applied in.
	b.edit(schema.GroupVersionResource{Group: "autoscaling", Version: "v1", Resource: "horizontalpodautoscalers"}, ns, "web", "somebody", `{"spec":{"maxReplicas":9}}`)
	inSync(moved)
	b.restartInMode()
	inSync(moved)
	after := b.get(scalers, ns, "web")
	if most, _, err := unstructured.NestedInt64(after.Object, "spec", "maxReplicas"); err != nil || most != 5 {
		t.Errorf("maxReplicas is %d: %v", most, err)
	}
	if after.GetUID() != scaler.GetUID() || b.get(events, ns, "note").GetUID() != note.GetUID() {
		t.Error("an object was made anew")
	}
	for _, name := range []string{"web", "note"} {
		if n := b.listed("uid-pr01", name); n != 1 {
			t.Errorf("the inventory has %s %d times", name, n)
		}
	}
	if gone := append(scalersGone(), eventsGone()...); len(gone) > 0 {
		t.Errorf("a watch saw that %v were deleted", gone)
	}
}
