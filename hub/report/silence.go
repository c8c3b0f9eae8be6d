// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// ClusterChanged is told of each change of a Cluster in the cache (a nil next:
// it is gone). A Cluster that is no longer reachable starts the paced sweep
// that gives Unknown to what only its agent can know.
func (r *Reporter) ClusterChanged(old, next *v1alpha1.Cluster) {
	if old != nil && next != nil && boundKey(old) != boundKey(next) {
		// Another agent has joined, and counts from the start.
		r.startOver(types.NamespacedName{Namespace: next.Namespace, Name: next.Name})
	}
	if next == nil {
		r.losses.Add(old.UID) // nothing is held of it any more
	}
	switch {
	case next == nil:
		r.sweeps.Add(types.NamespacedName{Namespace: old.Namespace, Name: old.Name})
	case !next.Status.Reachable && (old == nil || old.Status.Reachable || old.UID != next.UID):
		r.sweeps.Add(types.NamespacedName{Namespace: next.Namespace, Name: next.Name})
	}
}

// Connected is told of each new session. It asks the agent for the state of
// those Releases whose stored one is known to be out of date, and of no other:
// a reconnect in which nothing changed asks and writes nothing.
func (r *Reporter) Connected(cluster tunnel.ClusterID) {
	r.startOver(keyOf(cluster))
	r.asks.Add(cluster)
}

// startOver lets counters begin anew: an agent that lost its state begins at 1, so
// that they mean something within one session only.
func (r *Reporter) startOver(cluster types.NamespacedName) {
	list := r.options.Releases.ReleasesByCluster(cluster)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, release := range list {
		r.startOverLocked(release.UID)
	}
}

func (r *Reporter) startOverLocked(release types.UID) {
	if e := r.entries[release]; e != nil {
		e.seen, e.written = 0, 0
		e.session++
	}
}

func boundKey(cluster *v1alpha1.Cluster) string {
	if cluster.Status.Agent == nil {
		return ""
	}
	return cluster.Status.Agent.BoundKey
}

func (r *Reporter) sweepLoop(ctx context.Context) {
	limiter := rate.NewLimiter(sweepPerSecond, 1)
	for {
		key, shutdown := r.sweeps.Get()
		if shutdown {
			return
		}
		if err := r.sweep(ctx, key, limiter); err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Releases of a lost cluster still show their last state", "cluster", key)
		}
		r.sweeps.Done(key)
	}
}

// sweep stops when the session is back: what was not written by then needs no
// writing.
func (r *Reporter) sweep(ctx context.Context, key types.NamespacedName, limiter *rate.Limiter) error {
	var failures error
	for _, listed := range r.options.Releases.ReleasesByCluster(key) {
		silence := Silence{Reason: v1alpha1.ReasonDisconnected, Cluster: key.Name}
		cluster, ok := r.options.Clusters.Cluster(key)
		switch {
		case !ok:
			silence.Reason = v1alpha1.ReasonClusterNotReady
		case cluster.Status.Reachable:
			return failures
		default:
			silence.Dialled = dialled(cluster.Spec.ConnectionMode)
		}
		release, ok := r.options.Releases.ReleaseByUID(listed.UID)
		// One that is being deleted goes in a moment, unless it waits for the cluster.
		going := ok && release.DeletionTimestamp != nil && !release.Spec.DeletionPolicy.BlockOnClusterUnreachable
		if !ok || going || !telling(release.Status.Conditions) {
			continue
		}
		if err := limiter.Wait(ctx); err != nil {
			return err
		}
		last := r.options.Orders.LastOrder(release.UID)
		err := r.writeRelease(ctx, release, releaseChange{fold: func(next *v1Release) error {
			foldSilence(next, silence, last, r.clock.Now())
			return nil
		}})
		switch {
		case errors.Is(err, ErrGone):
		case err != nil:
			failures = errors.Join(failures, err)
		default:
			r.metrics.swept.Inc()
		}
	}
	return failures
}

// telling says whether InSync or Healthy still say something.
func telling(list []metav1.Condition) bool {
	for i := range list {
		if c := &list[i]; (c.Type == v1alpha1.ConditionInSync || c.Type == v1alpha1.ConditionHealthy) && c.Status != metav1.ConditionUnknown {
			return true
		}
	}
	return false
}

func (r *Reporter) askLoop(ctx context.Context) {
	for {
		cluster, shutdown := r.asks.Get()
		if shutdown {
			return
		}
		if err := r.ask(ctx, cluster); err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Info("An agent was asked for the state of its Releases and did not answer all",
				"cluster", cluster.String(), "cause", err.Error())
		}
		r.asks.Done(cluster)
	}
}

func (r *Reporter) ask(ctx context.Context, cluster tunnel.ClusterID) error {
	if r.options.Agents == nil {
		return nil
	}
	for _, release := range r.options.Releases.ReleasesByCluster(keyOf(cluster)) {
		if !outdated(release) || ctx.Err() != nil {
			continue
		}
		asked, cancel := context.WithTimeout(ctx, askTimeout)
		report, err := r.options.Agents.Newest(asked, cluster, release.UID)
		cancel()
		if err != nil {
			return err
		}
		if report == nil || report.Release.UID != string(release.UID) {
			continue
		}
		r.observeAsked(ctx, cluster, *report)
	}
	return ctx.Err()
}

// observeAsked takes an answer like a report, without waiting for its write.
func (r *Reporter) observeAsked(ctx context.Context, cluster tunnel.ClusterID, report tunnel.Report) {
	release, ok := r.options.Releases.ReleaseByUID(types.UID(report.Release.UID))
	if !ok || release.Namespace != cluster.Namespace || release.Spec.ClusterRef.Name != cluster.Name || release.DeletionTimestamp != nil {
		logr.FromContextOrDiscard(ctx).V(1).Info("An answer came for a Release that is gone", "cluster", cluster.String())
		return
	}
	r.hold(release.UID, &report)
}

// outdated says whether the stored state of a Release is known to be an old one.
func outdated(release *v1alpha1.Release) bool {
	if release.Status.Sequence == 0 || release.DeletionTimestamp != nil {
		return false
	}
	for i := range release.Status.Conditions {
		c := &release.Status.Conditions[i]
		switch c.Type {
		case v1alpha1.ConditionApplied:
			if c.Reason == v1alpha1.ReasonProgressing || c.Reason == v1alpha1.ReasonBlocked ||
				c.Status == metav1.ConditionUnknown && (c.Reason == v1alpha1.ReasonHubBehind || c.Reason == v1alpha1.ReasonClusterReset) {
				return true
			}
		case v1alpha1.ConditionInSync, v1alpha1.ConditionHealthy:
			if c.Reason == v1alpha1.ReasonDisconnected || c.Reason == v1alpha1.ReasonClusterNotReady || c.Reason == v1alpha1.ReasonNotReported ||
				c.Reason == v1alpha1.ReasonClusterReset {
				return true
			}
		}
	}
	return false
}
