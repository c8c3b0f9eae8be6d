// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
)

// Cluster changes a Cluster's status by compare-and-swap: mutate works on a
// fresh copy, may be called again, and its error ends the attempt and is
// returned as it is. The conditions are made here, whatever mutate does to them,
// but for what SetReady and SetDeleting put there. ErrGone: the Cluster was deleted, or another
// has its name.
func (r *Reporter) Cluster(ctx context.Context, key types.NamespacedName, uid types.UID, mutate func(*corev1alpha1.ClusterStatus) error) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	written, lost, newest := false, r.lost(key, uid), r.newestIfHeld(key)
	out, err := compareAndSwap(ctx, r.options.ClusterStore, key, uid, func(old, next *corev1alpha1.Cluster) error {
		if err := mutate(&next.Status); err != nil {
			return err
		}
		r.composeCluster(old, next, lost, newest)
		written = !equality.Semantic.DeepEqual(old.Status, next.Status)
		return nil
	})
	switch {
	case isGone(err):
		return ErrGone
	case err != nil:
		r.metrics.writes.WithLabelValues("cluster", "failed").Inc()
		return fmt.Errorf("write the status of Cluster %s: %w", key, err)
	case !written:
		r.metrics.writes.WithLabelValues("cluster", "unchanged").Inc()
		return nil
	}
	r.metrics.writes.WithLabelValues("cluster", "written").Inc()
	r.options.Memory.PutCluster(out)
	return nil
}

// composeCluster makes what follows from the rest of a status.
func (r *Reporter) composeCluster(old, next *corev1alpha1.Cluster, lost lost, newestOrder int64) {
	if lost.known {
		next.Status.UnknownReleases, next.Status.UnknownReleaseCount = lost.unknown, lost.unknownCount
	}
	if clusterHeldOver(next, newestOrder, r.clock.Now()) {
		next.Status.HeldDeletion = nil
	}
	next.Status.ObservedGeneration = next.Generation
	next.Status.Conditions = clusterConditions(clusterObserved{
		previous: old.Status.Conditions, mode: next.Spec.ConnectionMode, status: &next.Status, lost: lost, now: r.clock.Now(),
	})
}

// LeftBehind adds to the count of deleted Releases whose objects are still on a
// Cluster, because it was away for too long. A Cluster that is gone is no error.
func (r *Reporter) LeftBehind(ctx context.Context, uid types.UID, count int32) error {
	cluster, ok := r.options.Clusters.ClusterByUID(uid)
	if !ok {
		return nil
	}
	err := r.Cluster(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}, uid, func(status *corev1alpha1.ClusterStatus) error {
		status.LeftBehind += count
		return nil
	})
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

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

// Source writes what a check of a GitRepository came to, if that is news.
func (r *Reporter) Source(ctx context.Context, key types.NamespacedName, uid types.UID, outcome SourceOutcome) error {
	fold := func(old, next *sourcev1alpha1.GitRepository) bool {
		next.Status.ObservedGeneration = outcome.Generation
		if outcome.Revision != "" {
			next.Status.Revision = outcome.Revision
		}
		next.Status.Conditions = sourceConditions(old.Status.Conditions, outcome, r.clock.Now())
		return !equality.Semantic.DeepEqual(old.Status, next.Status)
	}
	cached, ok := r.options.Sources.GitRepository(key)
	if !ok || cached.UID != uid {
		return ErrGone
	}
	if !fold(cached, cached.DeepCopy()) {
		r.metrics.writes.WithLabelValues("gitrepository", "unchanged").Inc()
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	out, err := compareAndSwap(ctx, r.options.GitRepositoryStore, key, uid, func(old, next *sourcev1alpha1.GitRepository) error {
		fold(old, next)
		return nil
	})
	if isGone(err) {
		return ErrGone
	}
	if err != nil {
		r.metrics.writes.WithLabelValues("gitrepository", "failed").Inc()
		return fmt.Errorf("write the status of GitRepository %s: %w", key, err)
	}
	r.metrics.writes.WithLabelValues("gitrepository", "written").Inc()
	r.options.Memory.PutGitRepository(out)
	return nil
}

// sourceConditions is the one place where a GitRepository's conditions are made.
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
