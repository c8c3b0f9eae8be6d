// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/pkg/tunnel"
)

func waved(name, wave, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, annotations: {convoy.kumodo.io/sync-wave: %q}}\ndata: {k: %s}\n---\n", name, wave, value)
}

// stuck is a workload that no kubelet makes ready: it wants a node that is not there.
const stuck = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: stuck, annotations: {convoy.kumodo.io/sync-wave: "1"}}
spec:
  selector: {matchLabels: {app: stuck}}
  template:
    metadata: {labels: {app: stuck}}
    spec:
      nodeSelector: {nowhere: "true"}
      containers: [{name: c, image: "example/app:1"}]
---
`

func TestAWaveWaitsForTheHealthOfTheOneBeforeAndNamesWhatBlocks(t *testing.T) {
	inModes(t, testAWaveWaitsForTheHealthOfTheOneBeforeAndNamesWhatBlocks)
}

func testAWaveWaitsForTheHealthOfTheOneBeforeAndNamesWhatBlocks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("waves")
	short := func(o *tunnel.Order) { o.Policy.TimeoutSeconds = 3 }
	o := b.accept(b.order("waves", ns, waved("early", "-1", "v")+stuck+waved("late", "2", "v"), short))
	b.report("uid-waves", "blocked by the workload", func(r tunnel.Report) bool {
		return !r.Settled && r.Applied.Reason == "Blocked" && strings.Contains(r.Applied.Message, "apps/Deployment waves/stuck")
	})
	b.get(configmaps, ns, "early")
	r := b.settled(o)
	if r.Applied.Status != tunnel.False || r.Applied.Reason != "DeadlinePassed" || !strings.Contains(r.Applied.Message, "apps/Deployment waves/stuck") {
		t.Errorf("applied is %+v", r.Applied)
	}
	if r.Operation.Phase != "Failed" || r.AppliedRef != "" {
		t.Errorf("operation is %+v, applied ref %q", r.Operation, r.AppliedRef)
	}
	if _, err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Get(b.ctx, "late", metav1.GetOptions{}); err == nil {
		t.Error("the next wave was applied")
	}
	// What was applied is kept true meanwhile.
	b.edit(configmaps, ns, "early", "somebody", `{"data":{"k":"edited"}}`)
	b.live(configmaps, ns, "early", "healed", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v" })
	// When the block goes away, the rollout goes on by itself.
	b.edit(deployments, ns, "stuck", "somebody", `{"spec":{"paused":null}}`)
	next := b.accept(b.order("waves", ns, waved("early", "-1", "v")+waved("late", "2", "v"), short))
	b.applied(next)
	b.gone(deployments, ns, "stuck")
}

func TestANewerOrderSupersedesOneThatWaits(t *testing.T) {
	inModes(t, testANewerOrderSupersedesOneThatWaits)
}

func testANewerOrderSupersedesOneThatWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("supersede")
	first := b.accept(b.order("supersede", ns, stuck+waved("late", "2", "v1"), func(o *tunnel.Order) { o.Policy.TimeoutSeconds = 300 }))
	b.report("uid-supersede", "blocked", func(r tunnel.Report) bool { return r.Sequence == first.Sequence && r.Applied.Reason == "Blocked" })
	// The first one would wait longer than this test may take.
	b.apply("supersede", ns, waved("late", "2", "v2"))
	b.gone(deployments, ns, "stuck")
}

func TestAnUnchangedOrderCostsNoWriteOnTheObjects(t *testing.T) {
	inModes(t, testAnUnchangedOrderCostsNoWriteOnTheObjects)
}

func testAnUnchangedOrderCostsNoWriteOnTheObjects(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("again")
	documents := configMap(ns, "one", "k", "v") + configMap(ns, "two", "k", "v")
	b.apply("again", ns, documents)
	writes := b.calls.writes.Load()
	b.apply("again", ns, documents)
	if n := b.calls.writes.Load() - writes; n != 0 {
		t.Errorf("%d writes", n)
	}
	writes = b.calls.writes.Load()
	b.apply("again", ns, configMap(ns, "one", "k", "v")+configMap(ns, "two", "k", "v2"))
	if n := b.calls.writes.Load() - writes; n != 2 {
		t.Errorf("a change of one object made %d writes, want a dry run and an apply", n)
	}
}

func TestDroppedFieldsGoAwayEvenIfSomebodyTookThem(t *testing.T) {
	inModes(t, testDroppedFieldsGoAwayEvenIfSomebodyTookThem)
}

func testDroppedFieldsGoAwayEvenIfSomebodyTookThem(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("dropped")
	manual := func(o *tunnel.Order) { o.Policy.Automatic = false }
	b.apply("dropped", ns, configMap(ns, "one", "keep", "v", "drop", "v"), manual)
	b.edit(configmaps, ns, "one", "somebody", `{"data":{"drop":"taken","theirs":"x"}}`)
	b.report("uid-dropped", "drifted", func(r tunnel.Report) bool { return r.InSync.Status == tunnel.False })
	b.apply("dropped", ns, configMap(ns, "one", "keep", "v2"), manual)
	got := b.get(configmaps, ns, "one")
	if data(got, "drop") != "" || data(got, "theirs") != "x" || data(got, "keep") != "v2" {
		t.Errorf("the data are %v", got.Object["data"])
	}
}
