// SPDX-License-Identifier: Apache-2.0

// Package cluster reconciles Clusters: a new one is said to be never joined, a
// deleted one is let go. It stands beside the flow source -> render -> store ->
// deliver -> apply -> observe -> report: sessions and their reachability are the
// gateway's to tell.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/controller"
	"kumodo.io/convoy/hub/report"
)

// Limits of letting a Cluster go with its namespace.
const (
	// lastFor is how long a Cluster outlives the Releases of a namespace that goes:
	// their release orders need its agent's session.
	lastFor = 30 * time.Second
	// lookAgain is how often that is looked at.
	lookAgain = 500 * time.Millisecond
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

// Reporter writes the status.
type Reporter interface {
	Cluster(ctx context.Context, key types.NamespacedName, uid types.UID, mutate func(*v1alpha1.ClusterStatus) error) error
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
	Reporter   Reporter
	Orders     Orders
	Namespaces Namespaces
	Clock      clock.PassiveClock
}

// Reconciler of Clusters.
type Reconciler struct {
	Options
	controller.Feed
}

// New makes a Reconciler.
func New(options Options) *Reconciler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Reconciler{Options: options}
}

// Changed is told of each change of a Cluster in the cache.
func (r *Reconciler) Changed(old, next *v1alpha1.Cluster) {
	if next == nil {
		return
	}
	if old == nil || old.Generation != next.Generation || (old.DeletionTimestamp == nil) != (next.DeletionTimestamp == nil) {
		r.Add(types.NamespacedName{Namespace: next.Namespace, Name: next.Name})
	}
}

// Reconcile one Cluster.
func (r *Reconciler) Reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	cluster, ok := r.Cache.Cluster(key)
	switch {
	case !ok:
		return reconcile.Result{}, nil
	case cluster.DeletionTimestamp != nil:
		return r.letGo(ctx, key, cluster)
	case len(cluster.Status.Conditions) > 0 && cluster.Status.ObservedGeneration == cluster.Generation:
		return reconcile.Result{}, nil
	}
	// Its conditions follow from the rest of the status, where they are written.
	err := r.Reporter.Cluster(ctx, key, cluster.UID, func(*v1alpha1.ClusterStatus) error { return nil })
	if errors.Is(err, report.ErrGone) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, err
}

// letGo drops the finalizer, upon which the gateway ends the session. The
// Releases stay, and so do the workloads.
func (r *Reconciler) letGo(ctx context.Context, key types.NamespacedName, cluster *v1alpha1.Cluster) (reconcile.Result, error) {
	if !slices.Contains(cluster.Finalizers, v1alpha1.FinalizerCluster) {
		return reconcile.Result{}, nil
	}
	stay, err := r.staysForReleases(ctx, key, cluster)
	if err != nil {
		return reconcile.Result{}, err
	}
	if stay {
		return reconcile.Result{RequeueAfter: lookAgain}, nil
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

// staysForReleases: in a namespace that goes, Releases and Clusters are deleted
// in one sweep. The Cluster is the last to go, or no agent would hear of the
// release orders and each would go on enforcing for ever.
func (r *Reconciler) staysForReleases(ctx context.Context, key types.NamespacedName, cluster *v1alpha1.Cluster) (bool, error) {
	if r.Namespaces == nil || r.Clock.Since(cluster.DeletionTimestamp.Time) > lastFor {
		return false, nil
	}
	state, err := r.Namespaces.State(ctx, key.Namespace)
	if err != nil {
		return false, err
	}
	if !state.Terminating {
		return false, nil
	}
	if len(r.Cache.ReleasesByCluster(key)) > 0 {
		return true, nil
	}
	return cluster.Status.Reachable && r.Orders.Waiting(cluster.UID) > 0, nil
}
