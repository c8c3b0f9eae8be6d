// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// identity is who the certificate of a session speaks for.
type identity struct {
	id      tunnel.ClusterID
	bound   string // fingerprint of the key that joined
	renewal int64  // number of the certificate
}

// authorize tells from memory whether the identity may have a session.
func (g *Gateway) authorize(who identity) *Refusal {
	cluster, ok := g.opts.Clusters.ByUID(who.id.UID)
	if !ok && g.opts.Clusters.None() {
		return empty()
	}
	if !ok || cluster.Namespace != who.id.Namespace || cluster.Name != who.id.Name {
		return refuse(tunnel.ReasonClusterUnknown, "there is no such Cluster")
	}
	refused := accepts(cluster.Status.Agent, who)
	switch {
	case refused == nil:
		g.joined.forget(who.id.UID)
	case refused.Reason == tunnel.ReasonClusterUnknown && g.joined.is(who.id.UID, who.bound):
		return nil // joined a moment ago; the cache does not have it yet
	}
	return refused
}

// empty refuses for a moment only: who was certified by this hub and finds it without
// any Cluster comes before a restore, and should not stay away for long after it.
func empty() *Refusal {
	return &Refusal{
		Code: http.StatusServiceUnavailable, Reason: tunnel.ReasonOverloaded, Retry: RetryEmpty,
		Message: "this hub has no Clusters; it may be about to be restored",
	}
}

// accepts tells whether the recorded agent is the one with that identity, and may
// still use it.
func accepts(agent *v1alpha1.ClusterAgentStatus, who identity) *Refusal {
	switch {
	case agent == nil || fingerprint(agent.BoundKey) != who.bound:
		return refuse(tunnel.ReasonClusterUnknown, "another agent has joined as this Cluster, or none")
	case usable(agent) != nil:
		return usable(agent)
	case who.renewal < agent.UsedRenewal:
		return refuse(tunnel.ReasonCloneDetected, fmt.Sprintf("certificate number %d of this identity was used after number %d was: two agents have it; join anew", who.renewal, agent.UsedRenewal))
	}
	return nil
}

// usable tells whether an identity was taken away.
func usable(agent *v1alpha1.ClusterAgentStatus) *Refusal {
	switch {
	case agent.RevokedAt != nil:
		return refuse(tunnel.ReasonRevoked, "this identity was revoked; join anew")
	case agent.CloneDetectedAt != nil:
		return refuse(tunnel.ReasonCloneDetected, "two agents use this identity; join anew, once")
	}
	return nil
}

// settle has a refusal recorded that is news: that there is a clone.
func (g *Gateway) settle(ctx context.Context, who identity, refused *Refusal) {
	if refused.Reason != tunnel.ReasonCloneDetected {
		return
	}
	if cluster, ok := g.opts.Clusters.ByUID(who.id.UID); ok && cluster.Status.Agent != nil && cluster.Status.Agent.CloneDetectedAt != nil {
		return
	}
	now := metav1.NewTime(g.opts.Now())
	err := g.opts.Clusters.Update(ctx, who.id, func(status *v1alpha1.ClusterStatus) error {
		agent := status.Agent
		if agent != nil && fingerprint(agent.BoundKey) == who.bound && who.renewal < agent.UsedRenewal && agent.CloneDetectedAt == nil {
			agent.CloneDetectedAt = &now
		}
		return nil
	})
	if err != nil {
		g.log.Error(err, "a clone could not be recorded; it is refused all the same", "cluster", who.id.String())
		return
	}
	g.metrics.clones.Inc()
	g.log.Info("two agents use one identity; both are refused", "cluster", who.id.String(), "number", who.renewal)
	g.ClusterChanged(who.id.UID)
}

// ClusterChanged is told that a Cluster, by UID, has changed or gone. A session
// whose identity was taken away ends at once. It does not block.
func (g *Gateway) ClusterChanged(uid string) {
	for _, one := range g.sessions.of(uid) {
		g.spawn(func() { g.recheck(one) })
	}
}

// recheck ends a session that may be no more. One whose Cluster is not found is
// left to the sweeper, since a cache that is being filled ends nothing.
func (g *Gateway) recheck(s *session) {
	refused := g.authorize(s.identity)
	if refused == nil {
		return
	}
	if _, ok := g.opts.Clusters.ByUID(s.id.UID); !ok {
		return
	}
	g.metrics.dead.WithLabelValues(cause(refused)).Inc()
	g.log.Info("session ended", "cluster", s.id.String(), "cause", refused.Reason)
	closeLink(s.link)
}

// cause of a session's end, for metrics.
func cause(r *Refusal) string {
	if r.Reason == tunnel.ReasonCloneDetected {
		return "clone"
	}
	return "revoked"
}

// recovered counts a certificate that is made with the bound key alone. In any
// RecoveryWindow, MaxRecoveries are allowed.
func recovered(agent *v1alpha1.ClusterAgentStatus, now time.Time) error {
	within := slices.DeleteFunc(slices.Clone(agent.RecoveredAt), func(at metav1.Time) bool { return now.Sub(at.Time) >= RecoveryWindow })
	if len(within) >= MaxRecoveries {
		return refuse(tunnel.ReasonTooManyRecoveries, fmt.Sprintf("this identity has recovered %d times within a day; try again after %s, or join anew",
			len(within), within[0].Add(RecoveryWindow).UTC().Format(time.RFC3339)))
	}
	at := metav1.NewTime(now)
	agent.RecoveredAt = append(within, at)
	agent.Recoveries = int64(len(agent.RecoveredAt))
	agent.LastRecoveryAt = &at
	return nil
}

// asRefusal is the Refusal in an error, nil when there is none.
func asRefusal(err error) *Refusal {
	var refused *Refusal
	if errors.As(err, &refused) {
		return refused
	}
	return nil
}
