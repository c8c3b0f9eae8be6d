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

	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
)

// SourceOutcome is what a reachability check came to.
type SourceOutcome struct {
	// Generation that was checked.
	Generation int64
	// Revision that the ref is at; empty when it could not be looked up, then the
	// old one stays.
	Revision string
	// Ready is the finding of the check.
	Ready Finding
}

// SourceStore writes the status of one kind of sources.
type SourceStore interface {
	update(ctx context.Context, source sourcev1alpha1.Source, change func(old, next sourcev1alpha1.Source)) (sourcev1alpha1.Source, error)
}

// SourceStatus makes a SourceStore of the registry's store of a kind.
func SourceStatus[T sourceObject[T]](store StatusStore[T]) SourceStore {
	return typedSourceStore[T]{store}
}

type sourceObject[T any] interface {
	copied[T]
	sourcev1alpha1.Source
}

type typedSourceStore[T sourceObject[T]] struct{ store StatusStore[T] }

func (s typedSourceStore[T]) update(ctx context.Context, source sourcev1alpha1.Source, change func(old, next sourcev1alpha1.Source)) (sourcev1alpha1.Source, error) {
	key := types.NamespacedName{Namespace: source.GetNamespace(), Name: source.GetName()}
	return compareAndSwap(ctx, s.store, key, source.GetUID(), func(old, next T) error {
		change(old, next)
		return nil
	})
}

// Source writes what a check of a source came to, if that is news. ErrGone: it was
// deleted, or another has its name.
func (r *Reporter) Source(ctx context.Context, source sourcev1alpha1.Source, outcome SourceOutcome) error {
	kind := source.SourceKind()
	key := types.NamespacedName{Namespace: source.GetNamespace(), Name: source.GetName()}
	writes := func(result string) { r.metrics.writes.WithLabelValues(strings.ToLower(kind), result).Inc() }
	cached, ok := r.options.Sources.Source(kind, key)
	store := r.options.SourceStores[kind]
	if !ok || cached.GetUID() != source.GetUID() || store == nil {
		return ErrGone
	}
	was := cached.SourceStatus()
	if equality.Semantic.DeepEqual(was, r.sourceStatus(was, outcome)) {
		writes("unchanged")
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	out, err := store.update(ctx, source, func(old, next sourcev1alpha1.Source) {
		next.SetSourceStatus(r.sourceStatus(old.SourceStatus(), outcome))
	})
	if isGone(err) {
		return ErrGone
	}
	if err != nil {
		writes("failed")
		return fmt.Errorf("write the status of %s %s: %w", kind, key, err)
	}
	writes("written")
	r.options.Memory.PutSource(out)
	return nil
}

func (r *Reporter) sourceStatus(old sourcev1alpha1.SourceStatus, outcome SourceOutcome) sourcev1alpha1.SourceStatus {
	next := old
	next.ObservedGeneration = outcome.Generation
	if outcome.Revision != "" {
		next.Revision = outcome.Revision
	}
	next.Conditions = sourceConditions(old.Conditions, outcome, r.clock.Now())
	return next
}

// sourceConditions is the one place where a source's conditions are made.
func sourceConditions(previous []metav1.Condition, outcome SourceOutcome, now time.Time) []metav1.Condition {
	ready := metav1.Condition{
		Type: sourcev1alpha1.ConditionReady, ObservedGeneration: outcome.Generation,
		Status: outcome.Ready.Status, Reason: cleanReason(outcome.Ready.Reason), Message: clip(outcome.Ready.Message, maxMessage),
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	}
	if old := meta.FindStatusCondition(previous, ready.Type); old != nil && old.Status == ready.Status {
		ready.LastTransitionTime = old.LastTransitionTime
	}
	return []metav1.Condition{ready}
}
