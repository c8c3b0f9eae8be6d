// SPDX-License-Identifier: Apache-2.0

// Package cluster reconciles Clusters: a new one is said to be never joined, a
// revoked one to be revoked, a deleted one is let go, after its Releases where it
// says so. It stands beside the flow source -> render -> store ->
// deliver -> apply -> observe -> report: sessions and their reachability are the
// gateway's to tell.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/controller"
	"kumodo.io/convoy/hub/report"
)

// Cache is the hub's cache.
type Cache interface {
	Cluster(key types.NamespacedName) (*v1alpha1.Cluster, bool)
	ReleasesByCluster(key types.NamespacedName) []*v1alpha1.Release
}

// Store is the registry's store of Clusters.
type Store interface {
	RemoveFinalizer(ctx context.Context, key types.NamespacedName, uid types.UID, finalizer string) error
}

// Releases is the registry's store of Releases. What is deleted through it, in
// process, was counted when the Cluster was deleted.
type Releases interface {
	Delete(ctx context.Context, key types.NamespacedName, uid types.UID) error
}

// Reporter writes the status.
type Reporter interface {
	Cluster(ctx context.Context, key types.NamespacedName, uid types.UID, mutate func(*v1alpha1.ClusterStatus) error) error
	// HeldOver: the status names a held deletion that is out of date, which a write drops.
	HeldOver(cluster *v1alpha1.Cluster) bool
}

// Orders are what Clusters are to do.
type Orders interface {
	// Waiting counts the last orders of deleted Releases that a Cluster has not
	// carried out.
	Waiting(cluster types.UID) int
	// Forget drops what is kept for a Cluster that goes.
	Forget(ctx context.Context, cluster types.UID) error
}

// Namespaces are the host's; nil in standalone mode.
type Namespaces interface {
	State(ctx context.Context, name string) (controller.NamespaceState, error)
}

// Options of a Reconciler. All but Namespaces and Clock are required.
type Options struct {
	Cache      Cache
	Store      Store
	Releases   Releases
	Reporter   Reporter
	Orders     Orders
	Namespaces Namespaces
	Clock      clock.PassiveClock
}

// Reconciler of Clusters.
type Reconciler struct {
	Options
	controller.Feed

	mu sync.Mutex
	// told is what was last said of the deletion of a Cluster, and when; guarded by mu.
	told map[types.NamespacedName]progress
}

// New makes a Reconciler.
func New(options Options) *Reconciler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Reconciler{Options: options, told: map[types.NamespacedName]progress{}}
}

// Changed is told of each change of a Cluster in the cache.
func (r *Reconciler) Changed(old, next *v1alpha1.Cluster) {
	switch {
	case next == nil:
		r.Add(types.NamespacedName{Namespace: old.Namespace, Name: old.Name})
	case old == nil, old.Generation != next.Generation, (old.DeletionTimestamp == nil) != (next.DeletionTimestamp == nil),
		revoked(next) && !revoked(old),
		next.DeletionTimestamp != nil && old.Status.Reachable != next.Status.Reachable:
		r.Add(types.NamespacedName{Namespace: next.Namespace, Name: next.Name})
	}
}

// Reconcile one Cluster.
func (r *Reconciler) Reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	cluster, ok := r.Cache.Cluster(key)
	switch {
	case !ok:
		r.forget(key)
		return reconcile.Result{}, nil
	case cluster.DeletionTimestamp != nil:
		return r.letGo(ctx, key, cluster)
	case len(cluster.Status.Conditions) > 0 && cluster.Status.ObservedGeneration == cluster.Generation && said(cluster) && !r.Reporter.HeldOver(cluster):
		return reconcile.Result{}, nil
	}
	// Its conditions follow from the rest of the status, where they are written.
	err := r.Reporter.Cluster(ctx, key, cluster.UID, func(status *v1alpha1.ClusterStatus) error {
		if status.Agent != nil && status.Agent.RevokedAt != nil {
			status.Reachable = false // its session ends, and no other is accepted
		}
		return nil
	})
	if errors.Is(err, report.ErrGone) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, err
}

func revoked(cluster *v1alpha1.Cluster) bool {
	return cluster.Status.Agent != nil && cluster.Status.Agent.RevokedAt != nil
}

// said: that the Cluster is revoked, if it is, stands in its conditions.
func said(cluster *v1alpha1.Cluster) bool {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady)
	return !revoked(cluster) || !cluster.Status.Reachable && ready != nil && ready.Reason == v1alpha1.ReasonRevoked
}

// letGo drops the finalizer, upon which the gateway ends the session and the key
// of the agent is refused. Releases that are left stay, and so do the workloads.
func (r *Reconciler) letGo(ctx context.Context, key types.NamespacedName, cluster *v1alpha1.Cluster) (reconcile.Result, error) {
	if !slices.Contains(cluster.Finalizers, v1alpha1.FinalizerCluster) {
		return reconcile.Result{}, nil
	}
	for _, stays := range []func(context.Context, types.NamespacedName, *v1alpha1.Cluster) (time.Duration, error){r.staysForNamespace, r.prunes} {
		pause, err := stays(ctx, key, cluster)
		if err != nil || pause > 0 {
			return reconcile.Result{RequeueAfter: pause}, err
		}
	}
	if err := r.Orders.Forget(ctx, cluster.UID); err != nil {
		return reconcile.Result{}, fmt.Errorf("let Cluster %s go: %w", key, err)
	}
	if err := r.Store.RemoveFinalizer(ctx, key, cluster.UID, v1alpha1.FinalizerCluster); err != nil {
		return reconcile.Result{}, fmt.Errorf("let Cluster %s go: %w", key, err)
	}
	logr.FromContextOrDiscard(ctx).Info("Cluster is gone; its Releases and what they applied stay", "cluster", key.String())
	return reconcile.Result{}, nil
}
