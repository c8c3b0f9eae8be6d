// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// Reset makes void what was reported of a Cluster's Releases, since another target
// stands behind the Cluster now: what is applied there, counts and exceptions, and
// the inventory. Orders stay as they are: the new target has none and is given all.
//
// It is called before the new target's UID is written to the Cluster's status and
// before anything that it reports is taken, and returns when all is written: then a
// hub that ends in between begins again. An error says that it is not done.
func (r *Reporter) Reset(ctx context.Context, cluster tunnel.ClusterID) error {
	key := keyOf(cluster)
	current, ok := r.options.Clusters.Cluster(key)
	if !ok || string(current.UID) != cluster.UID {
		return ErrGone
	}
	r.mu.Lock()
	delete(r.holdings, current.UID)
	r.resets[current.UID] = r.clock.Now()
	r.mu.Unlock()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, release := range r.options.Releases.ReleasesByCluster(key) {
		group.Go(func() error { return r.resetOne(ctx, release) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("void what was reported of %s: %w", cluster, err)
	}
	return nil
}

func (r *Reporter) resetOne(ctx context.Context, release *v1Release) error {
	r.forget(release.UID)
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if release.DeletionTimestamp != nil || release.Status.Sequence == 0 {
		return nil
	}
	if err := r.DeleteInventory(ctx, types.NamespacedName{Namespace: release.Namespace, Name: release.Name}); err != nil {
		return err
	}
	err := r.writeRelease(ctx, release, releaseChange{fold: func(next *v1Release) error {
		foldReset(next, r.clock.Now())
		return nil
	}})
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

// foldReset takes out what only the former target can have said. History stays: it
// tells which renders there were.
func foldReset(release *v1alpha1.Release, now time.Time) {
	status := &release.Status
	status.AppliedRef, status.Objects, status.Exceptions, status.MoreExceptions = "", v1alpha1.ObjectCounts{}, nil, 0
	status.LastOperation, status.LastReportedAt = nil, nil
	o := start(release, 0, now)
	o.Reset = true
	status.Conditions = conditions(o)
}

func resetFinding() Finding {
	return Finding{metav1.ConditionUnknown, v1alpha1.ReasonClusterReset, "another cluster stands behind this Cluster now; all is applied there anew"}
}
