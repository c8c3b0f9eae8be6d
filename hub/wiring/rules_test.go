// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/api/extensions/v1alpha1"
	"kumodo.io/convoy/hub/controller/healthrule"
	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/hub/store/memory"
	"kumodo.io/convoy/pkg/tunnel"
)

// oneRule is a cache with one set of rules, and nothing ordered.
type oneRule struct{}

func (oneRule) RuleSet(types.NamespacedName) (v1alpha1.RuleSet, bool) { return nil, false }
func (oneRule) Releases() []*corev1alpha1.Release                     { return nil }
func (oneRule) Ordered(types.UID) (tunnel.Order, bool)                { return tunnel.Order{}, false }
func (oneRule) RuleSets(namespace string) []v1alpha1.RuleSet {
	if namespace != "" {
		return nil
	}
	return []v1alpha1.RuleSet{&v1alpha1.GlobalHealthRuleSet{
		ObjectMeta: metav1.ObjectMeta{Name: "queues"},
		Spec:       v1alpha1.HealthRuleSetSpec{Rules: []v1alpha1.HealthRule{{Kind: "Queue", Healthy: "true"}}},
	}}
}

func TestRulesThatTheStoreHasLostAreMadeAgainOfTheSets(t *testing.T) {
	t.Parallel()
	plain := store.NewPlain(&memory.Backend{})
	h := &hub{rules: healthrule.New(healthrule.Options{Cache: oneRule{}, Orders: oneRule{}, Store: documents{plain}})}
	metrics, err := store.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	h.objects = metrics.Recover(plain, false, finder{h})
	layer, _, err := h.rules.Rules(t.Context(), &corev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}, nil)
	if err != nil || layer == nil {
		t.Fatalf("rules %v, %v", layer, err)
	}
	read := func(ctx context.Context) []byte {
		t.Helper()
		blob, _, err := h.objects.Open(ctx, layer.Digest)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(blob)
		if err := errors.Join(err, blob.Close()); err != nil {
			t.Fatal(err)
		}
		return raw
	}
	before := read(t.Context())
	if err := plain.Delete(t.Context(), layer.Digest); err != nil {
		t.Fatal(err)
	}
	if after := read(t.Context()); !bytes.Equal(before, after) {
		t.Errorf("%s became %s", before, after)
	}
}
