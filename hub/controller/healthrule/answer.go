// SPDX-License-Identifier: Apache-2.0

package healthrule

import (
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// Rules gives the layer of rules that a Release is judged by on its Cluster, nil when the
// built-in ones are enough, and what these rules read of cluster and self. A layer that
// is not ordered yet is in the render store when Rules returns. cluster is nil while there
// is none. ErrStore: the store failed, and it is to be tried again.
//
// When sets are missing that the Release names, or its Cluster is away, the rules that
// were ordered stay; a Release that nothing was ordered for yet is judged by the sets
// that are there.
//
// Other rules than those that are ordered are given out at a bounded pace: until its
// turn comes a Release is told the old ones, and is looked at again then. A Release
// whose spec has changed does not wait.
func (r *Reconciler) Rules(ctx context.Context, release *corev1alpha1.Release, cluster *corev1alpha1.Cluster) (*tunnel.Layer, map[string]string, error) {
	document := r.document(choose(r.Cache, release.Namespace, release.Spec.Health.RuleSets))
	ordered, isOrdered := r.Orders.Ordered(release.UID)
	isOrdered = isOrdered && (cluster == nil || types.UID(ordered.ClusterUID) == cluster.UID)
	away := cluster == nil || !cluster.Status.Reachable
	if isOrdered && (away || len(document.Missing) > 0) {
		r.done(release.UID)
		return ordered.Rules, ordered.Facts, nil
	}
	facts := factsOf(document.Reads, release, cluster)
	same := isOrdered && sameLayer(ordered.Rules, document.Layer)
	if same && maps.Equal(ordered.Facts, facts) {
		r.done(release.UID)
		return ordered.Rules, ordered.Facts, nil
	}
	if isOrdered && !r.turn(release) {
		return ordered.Rules, ordered.Facts, nil
	}
	if document.Layer != nil && !same {
		if err := r.keep(ctx, document); err != nil {
			return nil, nil, err
		}
	}
	return document.Layer, facts, nil
}

// Missing names the sets that a Release is to be judged by and is not: those that it
// names and that there are none of, and those that are too much.
func (r *Reconciler) Missing(release *corev1alpha1.Release) []string {
	return r.document(choose(r.Cache, release.Namespace, release.Spec.Health.RuleSets)).Missing
}

func sameLayer(a, b *tunnel.Layer) bool { return a == b || a != nil && b != nil && *a == *b }

// turn says whether the turn of a Release has come to get other rules. If not, it is
// enqueued for that time.
func (r *Reconciler) turn(release *corev1alpha1.Release) bool {
	automatic := release.Spec.SyncPolicy.Automatic
	if release.Generation != release.Status.ObservedGeneration || automatic != nil && !*automatic {
		return true // a new order comes anyway, or none at all
	}
	now := r.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, waits := r.turns[release.UID]; waits {
		if now.Before(at) {
			return false
		}
		// It keeps its turn until its order names the rules, so that a write that failed
		// does not send it back to the end.
		return true
	}
	pause := r.pace.ReserveN(now, 1).DelayFrom(now)
	r.turns[release.UID] = now.Add(pause)
	if pause <= 0 {
		r.metrics.turns.WithLabelValues("now").Inc()
		return true
	}
	r.metrics.turns.WithLabelValues("later").Inc()
	r.enqueue(types.NamespacedName{Namespace: release.Namespace, Name: release.Name}, pause)
	return false
}

// done forgets the turn of a Release that has the rules that it should have.
func (r *Reconciler) done(release types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.turns, release)
}

// ReleaseChanged is told of each change of a Release in the cache.
func (r *Reconciler) ReleaseChanged(old, next *corev1alpha1.Release) {
	if next == nil {
		r.done(old.UID)
	}
}

// keep puts a document into the render store, unless it was put there a while ago.
func (r *Reconciler) keep(ctx context.Context, document Document) error {
	digest := document.Layer.Digest
	r.mu.Lock()
	at, ok := r.stored[digest]
	r.mu.Unlock()
	if ok && r.Clock.Since(at) < storeAgain {
		return nil
	}
	_, err, _ := r.flights.Do(digest, func() (any, error) {
		// Others wait for it: it goes on when the first who asked gives up.
		long, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		if err := r.Store.Put(long, document.Bytes); err != nil {
			return nil, err //nolint:wrapcheck // wrapped below, for each who waits
		}
		r.metrics.documents.WithLabelValues("stored").Inc()
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.stored) >= maxStored {
			clear(r.stored)
		}
		r.stored[digest] = r.Clock.Now()
		return nil, nil //nolint:nilnil // nobody wants a value
	})
	if err != nil {
		r.metrics.documents.WithLabelValues("failed").Inc()
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	return nil
}

// Made gives the bytes of a document that is known by its digest: what the store has
// lost is made again of the sets.
func (r *Reconciler) Made(digest string) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, document := range r.documents {
		if document.Layer != nil && document.Layer.Digest == digest {
			return document.Bytes, true
		}
	}
	return nil, false
}

// storeTimeout ends one write to the store.
const storeTimeout = 30 * time.Second
