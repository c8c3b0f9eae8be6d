// SPDX-License-Identifier: Apache-2.0

package healthrule

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/api/extensions/v1alpha1"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/pkg/tunnel"
)

var errTest = errors.New("broken for a test")

// world is all that a Reconciler sees.
type world struct {
	sets     map[types.NamespacedName]v1alpha1.RuleSet
	releases []*corev1alpha1.Release
	orders   map[types.UID]tunnel.Order
	told     []report.RuleSetOutcome
	puts     int
	broken   error
	enqueued map[types.NamespacedName]time.Duration
	blobs    map[string]string // by digest
	clock    *clocktesting.FakeClock
}

func (w *world) RuleSet(key types.NamespacedName) (v1alpha1.RuleSet, bool) {
	set, ok := w.sets[key]
	return set, ok
}

func (w *world) RuleSets(namespace string) []v1alpha1.RuleSet {
	var out []v1alpha1.RuleSet
	for key, set := range w.sets {
		if key.Namespace == namespace {
			out = append(out, set)
		}
	}
	return out
}

func (w *world) Releases() []*corev1alpha1.Release { return w.releases }

func (w *world) Ordered(release types.UID) (tunnel.Order, bool) {
	order, ok := w.orders[release]
	return order, ok
}

// RuleSet implements Reporter.
type told struct{ *world }

func (t told) RuleSet(_ context.Context, set v1alpha1.RuleSet, outcome report.RuleSetOutcome) error {
	if _, ok := t.sets[keyOf(set)]; !ok {
		return report.ErrGone
	}
	t.world.told = append(t.world.told, outcome)
	return nil
}

func (w *world) Put(_ context.Context, document []byte) error {
	w.puts++
	if w.broken != nil {
		return w.broken
	}
	w.blobs[fmt.Sprintf("sha256:%x", sha256.Sum256(document))] = string(document)
	return nil
}

func newWorld(t *testing.T, sets ...v1alpha1.RuleSet) (*world, *Reconciler) {
	t.Helper()
	w := &world{
		sets: map[types.NamespacedName]v1alpha1.RuleSet{}, orders: map[types.UID]tunnel.Order{},
		enqueued: map[types.NamespacedName]time.Duration{}, blobs: map[string]string{},
		clock: clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0)),
	}
	for _, set := range sets {
		w.sets[keyOf(set)] = set
	}
	r := New(Options{Cache: w, Reporter: told{w}, Store: w, Orders: w, Clock: w.clock})
	r.Releases(func(key types.NamespacedName, after time.Duration) { w.enqueued[key] = after })
	return w, r
}

func rule(kind, healthy string) v1alpha1.HealthRule {
	return v1alpha1.HealthRule{Group: "mq.example", Kind: kind, Healthy: healthy}
}

func own(namespace, name string, rules ...v1alpha1.HealthRule) *v1alpha1.HealthRuleSet {
	return &v1alpha1.HealthRuleSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "-" + name), Generation: 1},
		Spec:       v1alpha1.HealthRuleSetSpec{Rules: rules},
	}
}

func global(name string, rules ...v1alpha1.HealthRule) *v1alpha1.GlobalHealthRuleSet {
	return &v1alpha1.GlobalHealthRuleSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("global-" + name), Generation: 1},
		Spec:       v1alpha1.HealthRuleSetSpec{Rules: rules},
	}
}

func release(name string, sets ...string) *corev1alpha1.Release {
	return &corev1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), Generation: 1},
		Spec: corev1alpha1.ReleaseSpec{
			ClusterRef: corev1alpha1.ClusterReference{Name: "edge"}, Health: corev1alpha1.HealthPolicy{RuleSets: sets},
		},
		Status: corev1alpha1.ReleaseStatus{ObservedGeneration: 1},
	}
}

func cluster() *corev1alpha1.Cluster {
	return &corev1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "edge", UID: "edge-uid"},
		Spec:       corev1alpha1.ClusterSpec{Metadata: map[string]string{"region": "eu", "name": "wrong"}},
		Status:     corev1alpha1.ClusterStatus{Reachable: true},
	}
}

// order lets a Release have an order for the rules that it is told.
func (w *world) order(t *testing.T, r *Reconciler, release *corev1alpha1.Release) tunnel.Order {
	t.Helper()
	layer, facts, err := r.Rules(t.Context(), release, cluster())
	if err != nil {
		t.Fatal(err)
	}
	order := tunnel.Order{ClusterUID: "edge-uid", Rules: layer, Facts: facts}
	w.orders[release.UID] = order
	return order
}

// stored reads a layer back.
func (w *world) stored(t *testing.T, layer *tunnel.Layer) string {
	t.Helper()
	if layer == nil {
		return ""
	}
	document, ok := w.blobs[layer.Digest]
	if !ok || len(document) != int(layer.Size) {
		t.Fatalf("the store has %d bytes of %s, want %d", len(document), layer.Digest, layer.Size)
	}
	return document
}

func many(n int) []v1alpha1.HealthRule {
	rules := make([]v1alpha1.HealthRule, n)
	for i := range rules {
		rules[i] = rule(fmt.Sprintf("Kind%d", i), fmt.Sprintf("cluster.key%d == 'x'", i))
	}
	return rules
}
