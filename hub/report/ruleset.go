// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	extensionsv1alpha1 "kumodo.io/convoy/api/extensions/v1alpha1"
)

// RuleSetOutcome is what became of the rules of a set.
type RuleSetOutcome struct {
	// Generation that was compiled.
	Generation int64
	// Ready is whether all rules can be used.
	Ready Finding
	// Errors of those that cannot, the first few.
	Errors []extensionsv1alpha1.RuleError
}

// RuleSets are those of the hub's cache. What is returned is shared and read only.
type RuleSets interface {
	// RuleSet by namespace and name; without a namespace it is a global one.
	RuleSet(key types.NamespacedName) (extensionsv1alpha1.RuleSet, bool)
	// PutRuleSet is told of what was written, before the watch tells it.
	PutRuleSet(set extensionsv1alpha1.RuleSet)
}

// RuleSetStore writes the status of one kind of rule sets.
type RuleSetStore interface {
	update(ctx context.Context, key types.NamespacedName, uid types.UID, change func(status *extensionsv1alpha1.HealthRuleSetStatus)) (extensionsv1alpha1.RuleSet, error)
}

// RuleSetStatus makes a RuleSetStore of the registry's store of a kind.
func RuleSetStatus[T ruleSetObject[T]](store StatusStore[T]) RuleSetStore {
	return typedRuleSetStore[T]{store}
}

type ruleSetObject[T any] interface {
	copied[T]
	extensionsv1alpha1.RuleSet
}

type typedRuleSetStore[T ruleSetObject[T]] struct{ store StatusStore[T] }

func (s typedRuleSetStore[T]) update(ctx context.Context, key types.NamespacedName, uid types.UID, change func(status *extensionsv1alpha1.HealthRuleSetStatus)) (extensionsv1alpha1.RuleSet, error) {
	return compareAndSwap(ctx, s.store, key, uid, func(_, next T) error {
		change(next.RuleSetStatus())
		return nil
	})
}

// RuleSet writes what became of the rules of a set, if that is news. ErrGone: it was
// deleted, or another has its name.
func (r *Reporter) RuleSet(ctx context.Context, set extensionsv1alpha1.RuleSet, outcome RuleSetOutcome) error {
	kind := set.RuleSetKind()
	key := types.NamespacedName{Namespace: set.GetNamespace(), Name: set.GetName()}
	writes := func(result string) { r.metrics.writes.WithLabelValues(strings.ToLower(kind), result).Inc() }
	store := r.options.RuleSetStores[kind]
	if store == nil || r.options.RuleSets == nil {
		return ErrGone
	}
	cached, ok := r.options.RuleSets.RuleSet(key)
	if !ok || cached.GetUID() != set.GetUID() {
		return ErrGone
	}
	next := cached.RuleSetStatus().DeepCopy()
	foldRuleSet(next, outcome, r.clock.Now())
	if equality.Semantic.DeepEqual(cached.RuleSetStatus(), next) {
		writes("unchanged")
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	out, err := store.update(ctx, key, set.GetUID(), func(status *extensionsv1alpha1.HealthRuleSetStatus) {
		foldRuleSet(status, outcome, r.clock.Now())
	})
	if isGone(err) {
		return ErrGone
	}
	if err != nil {
		writes("failed")
		return fmt.Errorf("write the status of %s %s: %w", kind, key, err)
	}
	writes("written")
	r.options.RuleSets.PutRuleSet(out)
	return nil
}

// foldRuleSet is the one place where the status of a set is made.
func foldRuleSet(status *extensionsv1alpha1.HealthRuleSetStatus, outcome RuleSetOutcome, now time.Time) {
	ready := metav1.Condition{
		Type: extensionsv1alpha1.ConditionReady, ObservedGeneration: outcome.Generation,
		Status: outcome.Ready.Status, Reason: cleanReason(outcome.Ready.Reason), Message: clip(outcome.Ready.Message, maxMessage),
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	}
	if old := meta.FindStatusCondition(status.Conditions, ready.Type); old != nil && old.Status == ready.Status {
		ready.LastTransitionTime = old.LastTransitionTime
	}
	*status = extensionsv1alpha1.HealthRuleSetStatus{
		ObservedGeneration: outcome.Generation, Conditions: []metav1.Condition{ready}, Errors: outcome.Errors,
	}
}
