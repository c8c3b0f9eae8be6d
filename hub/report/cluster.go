// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
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
	// What is lost was counted before the write, and another one may have been quicker with
	// a later count: it is looked at again, which costs no write when it is right.
	r.losses.Add(uid)
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
