// SPDX-License-Identifier: Apache-2.0

package healthrule

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/api/extensions/v1alpha1"
	"kumodo.io/convoy/hub/controller"
	"kumodo.io/convoy/hub/report"
)

// Options of a Reconciler. All but Clock and Registerer are required.
type Options struct {
	Cache    Cache
	Reporter Reporter
	Store    Store
	Orders   Orders
	Clock    clock.PassiveClock

	Registerer prometheus.Registerer
}

// Reconciler of rule sets. A global one is known by its name without a namespace.
type Reconciler struct {
	Options
	controller.Feed
	metrics *metrics
	books   books
	flights singleflight.Group
	// pace of Releases that get other rules.
	pace *rate.Limiter
	// enqueue is set before anything runs.
	enqueue Enqueue

	mu sync.Mutex
	// documents by the sets that they are made of; guarded by mu, as all below.
	documents map[string]Document
	// stored tells when a document was put into the store, by digest.
	stored map[string]time.Time
	// turns are those of Releases that are to get other rules.
	turns map[types.UID]time.Time
}

// New makes a Reconciler.
func New(options Options) *Reconciler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	r := &Reconciler{
		Options: options, books: books{known: map[types.NamespacedName]*compiled{}},
		pace: rate.NewLimiter(turnsPerSecond, turnsPerSecond), enqueue: func(types.NamespacedName, time.Duration) {},
		documents: map[string]Document{}, stored: map[string]time.Time{}, turns: map[types.UID]time.Time{},
	}
	r.metrics = newMetrics(options.Registerer, r.waiting)
	r.books.made = r.metrics.compiled.Inc
	return r
}

// waiting is how many Releases are to get other rules.
func (r *Reconciler) waiting() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return float64(len(r.turns))
}

// Releases sets who has Releases looked at. It is called before anything runs.
func (r *Reconciler) Releases(enqueue Enqueue) { r.enqueue = enqueue }

// Changed is told of each change of a set in the cache. Its status, which only the hub
// writes, is no reason to look again.
func (r *Reconciler) Changed(old, next v1alpha1.RuleSet) {
	switch {
	case next == nil:
		r.books.forget(keyOf(old))
		r.concern(old)
	case old == nil || old.GetUID() != next.GetUID() || old.GetGeneration() != next.GetGeneration():
		r.Add(keyOf(next))
		r.concern(next)
	}
}

// concern has the Releases looked at that may use a set.
func (r *Reconciler) concern(set v1alpha1.RuleSet) {
	var list []types.NamespacedName
	for _, release := range r.Cache.Releases() {
		if uses(release, set) {
			list = append(list, types.NamespacedName{Namespace: release.Namespace, Name: release.Name})
		}
	}
	over := min(time.Duration(len(list))*spread, maxSpread) + 1
	for _, key := range list {
		r.enqueue(key, rand.N(over))
	}
}

// uses says whether a Release may be judged by a set, by its name alone.
func uses(release *corev1alpha1.Release, set v1alpha1.RuleSet) bool {
	if namespace := set.GetNamespace(); namespace != "" && namespace != release.Namespace {
		return false
	}
	names := release.Spec.Health.RuleSets
	return len(names) == 0 || slices.Contains(names, set.GetName())
}

// Reconcile compiles a set, once for each generation, and says what came of it.
func (r *Reconciler) Reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	set, ok := r.Cache.RuleSet(key)
	if !ok {
		r.books.forget(key)
		return reconcile.Result{}, nil
	}
	entry := r.books.of(set)
	if entry.failed > 0 {
		logr.FromContextOrDiscard(ctx).V(1).Info("A set of health rules has some that cannot be used", "set", title(key), "count", entry.failed)
	}
	err := r.Reporter.RuleSet(ctx, set, outcomeOf(set, entry))
	if err != nil && !errors.Is(err, report.ErrGone) {
		return reconcile.Result{}, fmt.Errorf("report on %s: %w", title(key), err)
	}
	return reconcile.Result{}, nil
}

func outcomeOf(set v1alpha1.RuleSet, entry *compiled) report.RuleSetOutcome {
	all := len(set.RuleSetSpec().Rules)
	out := report.RuleSetOutcome{Generation: set.GetGeneration(), Errors: entry.errors}
	if entry.failed == 0 {
		out.Ready = report.Finding{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCompiled, Message: fmt.Sprintf("rules in use: %d", all)}
		return out
	}
	out.Ready = report.Finding{
		Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRulesFailed,
		Message: fmt.Sprintf("%d of %d rules are left out, the others are used: %s: %s", entry.failed, all, entry.errors[0].Field, entry.errors[0].Message),
	}
	return out
}
