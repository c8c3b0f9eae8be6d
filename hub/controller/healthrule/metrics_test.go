// SPDX-License-Identifier: Apache-2.0

package healthrule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// What a change of a set costs a hub with 1,000 Releases that use it: one compilation, one
// document, one blob, one write of the set's status, and for each Release one order, of
// which no more are given out in a second than the pace allows.
func TestAChangeOfASetOfAThousandReleasesIsOneLayerAndOneOrderForEach(t *testing.T) {
	t.Parallel()
	const releases = 1000
	registry := prometheus.NewRegistry()
	w, _ := newWorld(t, global("a", rule("Queue", "true")))
	r := New(Options{Cache: w, Reporter: told{w}, Store: w, Orders: w, Clock: w.clock, Registerer: registry})
	looks := 0
	var next []func() // Releases to be looked at
	byName := map[string]*corev1alpha1.Release{}
	orders := 0
	look := func(name string) {
		looks++
		one := byName[name]
		before := w.orders[one.UID]
		after := w.order(t, r, one)
		if before.Rules == nil || *before.Rules != *after.Rules {
			orders++
		}
	}
	w.enqueued = nil
	r.Releases(func(key types.NamespacedName, after time.Duration) {
		at := w.clock.Now().Add(after)
		next = append(next, func() {
			if w.clock.Now().Before(at) {
				w.clock.SetTime(at)
			}
			look(key.Name)
		})
	})
	for i := range releases {
		one := release(fmt.Sprintf("r-%d", i))
		w.releases, byName[one.Name] = append(w.releases, one), one
		look(one.Name)
	}
	if orders != releases || w.puts != 1 {
		t.Fatalf("%d orders and %d layers at first", orders, w.puts)
	}

	orders, looks = 0, 0
	changed := global("a", rule("Queue", "false"))
	changed.Generation = 2
	w.sets[keyOf(changed)] = changed
	began := w.clock.Now()
	r.Changed(global("a"), changed)
	if _, err := r.Reconcile(t.Context(), keyOf(changed)); err != nil {
		t.Fatal(err)
	}
	for len(next) > 0 {
		now := next
		next = nil
		for _, run := range now {
			run()
		}
	}
	if orders != releases {
		t.Errorf("%d orders for %d Releases", orders, releases)
	}
	if looks > 2*releases {
		t.Errorf("%d Releases were looked at, want each when the set changed and once more when its turn came", looks)
	}
	if w.puts != 2 || len(w.told) != 1 {
		t.Errorf("%d layers were stored and the status of the set was written %d times, want one more and once", w.puts, len(w.told))
	}
	if took := w.clock.Since(began); took < (releases/turnsPerSecond-1)*time.Second {
		t.Errorf("all orders within %s, want no more than %d a second", took, turnsPerSecond)
	}
	// The cache shows the orders; all is at rest.
	for name := range byName {
		look(name)
	}
	if orders != releases || w.puts != 2 {
		t.Errorf("%d orders and %d layers when all are looked at again", orders, w.puts)
	}
	counted := `
# HELP convoy_healthrule_compiled_total Sets of health rules compiled: one for each generation of a set.
# TYPE convoy_healthrule_compiled_total counter
convoy_healthrule_compiled_total 2
# HELP convoy_healthrule_documents_total Documents of health rules by what was done (made, stored, failed): Releases that use the same sets share one.
# TYPE convoy_healthrule_documents_total counter
convoy_healthrule_documents_total{result="made"} 2
convoy_healthrule_documents_total{result="stored"} 2
# HELP convoy_healthrule_waiting_releases Releases whose turn to get other rules is not over: their order does not name them yet.
# TYPE convoy_healthrule_waiting_releases gauge
convoy_healthrule_waiting_releases 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(counted),
		"convoy_healthrule_compiled_total", "convoy_healthrule_documents_total", "convoy_healthrule_waiting_releases"); err != nil {
		t.Error(err)
	}
	if turns := testutil.ToFloat64(r.metrics.turns.WithLabelValues("now")) + testutil.ToFloat64(r.metrics.turns.WithLabelValues("later")); turns != releases {
		t.Errorf("%v turns for %d Releases", turns, releases)
	}
}
