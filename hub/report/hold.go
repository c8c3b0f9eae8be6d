// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// Held writes down that a deletion of a Release was refused and can be confirmed.
// The same again within a minute is no news. ErrGone: there is no such Release.
func (r *Reporter) Held(ctx context.Context, key types.NamespacedName, uid types.UID, held v1alpha1.HeldDeletion) error {
	cached, ok := r.options.Releases.Release(key)
	if !ok || cached.UID != uid {
		return ErrGone
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	news := false
	err := r.writeRelease(ctx, cached, releaseChange{fold: func(next *v1Release) error {
		next.Status.HeldDeletion, news = foldHeld(next.Status.HeldDeletion, held)
		return nil
	}})
	if err == nil && news {
		r.tellHeldRelease(cached, held)
	}
	return err
}

// HeldCluster does the same for a deletion of a Cluster with its Releases.
func (r *Reporter) HeldCluster(ctx context.Context, key types.NamespacedName, uid types.UID, held v1alpha1.HeldDeletion) error {
	news := false
	err := r.Cluster(ctx, key, uid, func(status *v1alpha1.ClusterStatus) error {
		status.HeldDeletion, news = foldHeld(status.HeldDeletion, held)
		return nil
	})
	if err == nil && news {
		r.metrics.held.WithLabelValues("cluster", held.Reason).Inc()
		r.warn(About{"Cluster", key, uid}, v1alpha1.ReasonDeletionHeld, held.Message)
	}
	return err
}

func foldHeld(old *v1alpha1.HeldDeletion, held v1alpha1.HeldDeletion) (next *v1alpha1.HeldDeletion, news bool) {
	held.Message = clip(held.Message, maxMessage)
	if old != nil && held.At.Sub(old.At.Time).Abs() < operationRepeat && sameHeld(*old, held) {
		return old, false
	}
	return &held, true
}

func sameHeld(a, b v1alpha1.HeldDeletion) bool {
	if !a.Until.Equal(b.Until) {
		return false
	}
	a.At, a.Until = b.At, b.Until
	return a == b
}

// tellHeldRelease tells people of one. When there are many in a namespace, further
// ones are told of as one Event of their Cluster, which counts.
func (r *Reporter) tellHeldRelease(release *v1Release, held v1alpha1.HeldDeletion) {
	r.metrics.held.WithLabelValues("release", held.Reason).Inc()
	if r.heldTold.first(release.Namespace, r.clock.Now()) {
		key := types.NamespacedName{Namespace: release.Namespace, Name: release.Name}
		r.warn(About{"Release", key, release.UID}, v1alpha1.ReasonDeletionHeld, held.Message)
		return
	}
	key := types.NamespacedName{Namespace: release.Namespace, Name: release.Spec.ClusterRef.Name}
	if cluster, ok := r.options.Clusters.Cluster(key); ok {
		r.warn(About{"Cluster", key, cluster.UID}, v1alpha1.ReasonDeletionHeld, "deletions of more of its Releases are held; status.heldDeletion of each says why")
	}
}

// heldTold counts the Events about held deletions in each namespace, within a
// window that all share.
type heldTold struct {
	mu     sync.Mutex
	since  time.Time
	counts map[string]int
}

// first says whether an Event of its own is due.
func (h *heldTold) first(namespace string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.counts == nil || now.Sub(h.since) >= heldEventWindow {
		h.since, h.counts = now, map[string]int{}
	}
	h.counts[namespace]++
	return h.counts[namespace] <= heldEvents
}

// heldOver says whether what is recorded of a held deletion is out of date: it
// would be another one by now, or would not be held.
func heldOver(held *v1alpha1.HeldDeletion, object metav1.Object, sequence int64, uninstalls bool, now time.Time) bool {
	switch {
	case held == nil:
		return false
	case object.GetDeletionTimestamp() != nil, held.Sequence < sequence, now.Sub(held.At.Time) >= heldFor:
		return true
	case held.Reason == v1alpha1.HeldByCollector:
		return len(object.GetOwnerReferences()) == 0
	}
	return !uninstalls || held.Until != nil && !now.Before(held.Until.Time)
}

func releaseHeldOver(release *v1Release, now time.Time) bool {
	return heldOver(release.Status.HeldDeletion, release, release.Status.Sequence, !release.Spec.DeletionPolicy.KeepWorkloads, now)
}

func clusterHeldOver(cluster *v1alpha1.Cluster, newestOrder int64, now time.Time) bool {
	return heldOver(cluster.Status.HeldDeletion, cluster, newestOrder, cluster.Spec.DeletionPolicy.PruneReleases, now)
}

// HeldOver says whether a Cluster's status names a held deletion that is out of
// date, so that a write of its status would drop it.
func (r *Reporter) HeldOver(cluster *v1alpha1.Cluster) bool {
	if cluster.Status.HeldDeletion == nil {
		return false
	}
	newest := r.newestOrder(types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name})
	return clusterHeldOver(cluster, newest, r.clock.Now())
}

// newestOrder is the highest sequence of a Cluster's Releases, as far as the cache
// knows.
func (r *Reporter) newestOrder(cluster types.NamespacedName) int64 {
	newest := int64(0)
	for _, release := range r.options.Releases.ReleasesByCluster(cluster) {
		newest = max(newest, release.Status.Sequence)
	}
	return newest
}

// newestIfHeld is the same for a Cluster whose status names a held deletion, and 0
// for all others.
func (r *Reporter) newestIfHeld(key types.NamespacedName) int64 {
	if cluster, ok := r.options.Clusters.Cluster(key); ok && cluster.Status.HeldDeletion != nil {
		return r.newestOrder(key)
	}
	return 0
}
