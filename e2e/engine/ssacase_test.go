// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"kumodo.io/convoy/pkg/tunnel"
)

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
	// An agent that is started now does the same.
	b.restartInMode()
	b.apply("ss08", ns, two("2")+configMap(ns, "c", "k", "1"))
	b.apply("ss08", ns, two("2"))
	b.gone(configmaps, ns, "c")
	thing := "apiVersion: dead.example.test/v1beta1\nkind: Thing\nmetadata: {name: t, namespace: " + ns + "}\n"
	a, from := b.get(configmaps, ns, "a"), b.calls.n.Load()
	o := b.accept(b.order("ss08", ns, two("2")+thing))
	r := b.report("uid-ss08", "waits for the thing", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Applied.Reason == "Blocked" && strings.Contains(r.Applied.Message, "Thing")
	})
	if r.Applied.Status != tunnel.Unknown || strings.Contains(r.Applied.Message, "not found") {
		t.Errorf("applied is %+v", r.Applied)
	}
	for _, e := range r.Exceptions {
		if e.Kind != "Thing" || e.Reason == "Orphaned" {
			t.Errorf("exception %+v", e)
		}
	}
	if r.Counts.Drifted != 0 || r.Counts.Orphaned != 0 {
		t.Errorf("counts are %+v", r.Counts)
	}
	// It is tried again after pauses that grow.
	var tries []time.Time
	err := wait.PollUntilContextTimeout(b.ctx, 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		tries = b.calls.tries(from, "dead.example.test")
		n := len(tries)
		return n >= 4 && tries[n-1].Sub(tries[n-2]) >= 2*tries[1].Sub(tries[0]), nil
	})
	if err != nil {
		t.Errorf("tried at %v: %v", tries, err)
	}
	if got := b.get(configmaps, ns, "a"); got.GetUID() != a.GetUID() || got.GetResourceVersion() != a.GetResourceVersion() {
		t.Errorf("what is as it should be was touched: %v", got.Object)
	}
}

// tries are the times of the requests after the n-th that have a text in them. Those
// that follow each other within a moment are one try.
func (c *counter) tries(n int64, text string) []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []time.Time
	last := time.Time{}
	for i := int(n); i < len(c.seen); i++ {
		if !strings.Contains(c.seen[i], text) {
			continue
		}
		if c.when[i].Sub(last) > 200*time.Millisecond {
			out = append(out, c.when[i])
		}
		last = c.when[i]
	}
	return out
}
