// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/equality"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

const (
	maxAPIVersions = 512
	maxWord        = 128
)

// handleHello takes what the agent says of itself and its cluster.
func (s *session) handleHello(w http.ResponseWriter, r *http.Request) {
	var hello tunnel.Hello
	if err := tunnel.DecodeJSON(s.body(w, r), tunnel.MaxHelloBody, &hello); err != nil {
		tunnel.WriteProblem(w, http.StatusBadRequest, tunnel.ReasonBadRequest, "hello could not be read", 0)
		return
	}
	g := s.gw
	hello.TargetUID = clip(hello.TargetUID)
	if refused := g.welcome(r.Context(), s, &hello); refused != nil {
		writeRefusal(w, refused)
		return
	}
	g.log.V(1).Info("agent connected", "cluster", s.id.String(), "agentVersion", hello.AgentVersion)
	trust := g.trust()
	tunnel.WriteJSON(w, tunnel.HelloAnswer{
		HubVersion: g.opts.Version, Hub: g.opts.HubID, Now: g.opts.Now(), OrderKeys: g.opts.OrderKeys(), HubCA: trust.pem,
	})
}

// welcome lets a session into the table, or says why not.
func (g *Gateway) welcome(ctx context.Context, s *session, hello *tunnel.Hello) *Refusal {
	if !s.greet() {
		return &Refusal{Code: http.StatusConflict, Reason: tunnel.ReasonBadRequest, Message: "hello is said once"}
	}
	refused, err := g.admitHello(ctx, s, hello)
	switch {
	case refused != nil:
		g.refuseSession(s, refused)
		g.settle(ctx, s.identity, refused)
		if refused.Reason == tunnel.ReasonClusterConflict {
			g.recordConflict(ctx, s.id, refused.Message)
		}
		return refused
	case err != nil:
		g.log.Error(err, "connect could not be recorded", "cluster", s.id.String())
		if errors.Is(err, errMoved) {
			g.refuseSession(s, errMoved)
			return errMoved
		}
		// The comparison of sessions and statuses comes back to it.
	}
	s.mu.Lock()
	s.hello = true
	s.mu.Unlock()
	s.allow(tunnel.SessionTTL + tunnel.HandshakeTimeout)
	old, flapping := g.sessions.add(s, hello.TargetUID)
	if old == nil {
		return nil
	}
	g.metrics.displaced.Inc()
	from, to := old.link.Conn.RemoteAddr().String(), s.link.Conn.RemoteAddr().String()
	g.log.Info("session displaced by a newer one", "cluster", s.id.String(), "old", from, "new", to)
	if flapping {
		g.metrics.flapping.Inc()
		g.log.Info("sessions of one cluster displace each other: is the same agent running twice?", "cluster", s.id.String(), "old", from, "new", to)
		g.opts.Notice(s.id, v1alpha1.ReasonSessionsDisplaced, fmt.Sprintf(
			"more than %d sessions within %s displaced one another: is the same agent running in two places? Revoke its identity if it is not yours", MaxDisplaced, DisplacedWindow))
	}
	closeLink(old.link)
	return nil
}

// errMoved: that the cluster is another one could not be recorded, so nothing may
// be delivered to it.
var errMoved = &Refusal{
	Code: http.StatusServiceUnavailable, Reason: tunnel.ReasonInternal, Message: "the hub could not record the session", Retry: RetryEnroll,
}

// admitHello decides about a session that says hello, and records it if that is
// news.
func (g *Gateway) admitHello(ctx context.Context, s *session, hello *tunnel.Hello) (*Refusal, error) {
	cluster, ok := g.opts.Clusters.ByUID(s.id.UID)
	if refused := g.authorize(s.identity); refused != nil || !ok {
		return refused, nil
	}
	expected := cluster.Status.ClusterUID
	if refused := g.checkTarget(s, &cluster.Status, hello.TargetUID); refused != nil {
		return refused, nil
	}
	moved := expected != "" && hello.TargetUID != "" && hello.TargetUID != expected
	if moved {
		g.log.Info("cluster was made anew", "cluster", s.id.String(), "old", expected, "new", hello.TargetUID)
		if err := g.opts.Resets.Reset(ctx, s.id); err != nil {
			return nil, fmt.Errorf("%w: reset %s: %w", errMoved, s.id, err)
		}
	}
	err := g.recordConnected(ctx, s.id, func(status *v1alpha1.ClusterStatus) error {
		if refused := accepts(status.Agent, s.identity); refused != nil {
			return refused
		}
		if err := moveTarget(status, expected, hello.TargetUID); err != nil {
			return err
		}
		// A conflict that the move ends is no longer one, however late it was; its
		// message has the two clusters the other way round.
		if moved || !g.conflicts.has(s.id.UID) {
			clearConflict(status)
		}
		s.connected(status)
		describe(status, hello, g.opts.Now())
		return nil
	})
	if refused := asRefusal(err); refused != nil || err == nil {
		return refused, nil
	}
	if moved {
		err = fmt.Errorf("%w: %w", errMoved, err)
	}
	return nil, err
}

// recordConnected writes the status of a Cluster with a session, if that changes
// anything: change is tried on what is in memory first.
func (g *Gateway) recordConnected(ctx context.Context, id tunnel.ClusterID, change func(*v1alpha1.ClusterStatus) error) error {
	if cluster, ok := g.opts.Clusters.ByUID(id.UID); ok {
		wanted := cluster.Status.DeepCopy()
		if err := change(wanted); err == nil && equality.Semantic.DeepEqual(wanted, &cluster.Status) {
			return nil
		}
	}
	if err := g.opts.Clusters.Update(ctx, id, change); err != nil {
		return fmt.Errorf("record connect of %s: %w", id, err)
	}
	return nil
}

// connected is the status of a Cluster with this session. Its conditions are made
// where it is written.
func (s *session) connected(status *v1alpha1.ClusterStatus) {
	status.Reachable = true
	if agent := status.Agent; agent != nil && fingerprint(agent.BoundKey) == s.bound {
		// A hub that was restored hears of numbers that it does not remember.
		agent.UsedRenewal = max(agent.UsedRenewal, s.renewal)
		agent.Renewals = max(agent.Renewals, s.renewal)
	}
}

// describe keeps what an agent says of itself and its cluster. It may be hostile:
// all of it is bounded.
func describe(status *v1alpha1.ClusterStatus, hello *tunnel.Hello, now time.Time) {
	versions := slices.Compact(slices.Sorted(slices.Values(hello.APIVersions)))
	versions = slices.DeleteFunc(versions, func(v string) bool { return len(v) > maxWord })
	if len(versions) > maxAPIVersions {
		versions = versions[:maxAPIVersions]
	}
	status.KubernetesVersion = clip(hello.KubernetesVersion)
	status.APIVersions = versions
	status.AgentVersion = clip(hello.AgentVersion)
	status.ClockSkew = skew(status.ClockSkew, hello.Now, now)
}

// skew is how far the agent's clock is ahead of the hub's, to the minute; "" within
// one. It stays as recorded unless it has changed by more than a minute.
func skew(recorded string, agent, hub time.Time) string {
	if agent.IsZero() {
		return ""
	}
	const most = 100 * 365 * 24 * time.Hour
	ahead := max(-most, min(most, agent.Sub(hub))).Round(time.Minute)
	if ahead.Abs() <= time.Minute {
		ahead = 0
	}
	old, err := time.ParseDuration(recorded)
	switch {
	case err == nil && old.Abs() > time.Minute && old >= ahead-time.Minute && old <= ahead+time.Minute:
		return recorded
	case ahead == 0:
		return ""
	}
	return ahead.String()
}

func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxWord)], "") }

// watchReachable keeps statuses and sessions together: what a missed write or a
// restart of the hub left behind is put right, and a Cluster that was away for
// longer than its grace is said to be.
func (g *Gateway) watchReachable(ctx context.Context) {
	pace := rate.NewLimiter(ReachableRate, 1)
	tick := time.NewTicker(ReachableInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := g.compareReachable(ctx, pace); err != nil && ctx.Err() == nil {
			g.log.Error(err, "statuses of clusters could not be written; trying again")
		}
	}
}

func (g *Gateway) compareReachable(ctx context.Context, pace *rate.Limiter) error {
	reachable := map[string]bool{}
	for _, id := range g.opts.Clusters.Reachable() {
		reachable[id.UID] = true
		away, grace := g.sessions.away(id.UID, g.started)
		if away < grace {
			continue
		}
		if err := pace.Wait(ctx); err != nil {
			return fmt.Errorf("pace: %w", err)
		}
		if g.sessions.Connected(id.UID) {
			continue // came back meanwhile
		}
		err := g.opts.Clusters.Update(ctx, id, func(status *v1alpha1.ClusterStatus) error {
			status.Reachable = false
			return nil
		})
		if err != nil {
			return fmt.Errorf("record that %s is away: %w", id, err)
		}
		g.log.Info("cluster is not reachable", "cluster", id.String(), "away", away.Round(time.Second).String())
	}
	for _, s := range g.sessions.all() {
		cluster, ok := g.opts.Clusters.ByUID(s.id.UID)
		if !ok || !s.said() || cluster.Status.Reachable && (cluster.Status.Agent == nil || cluster.Status.Agent.UsedRenewal >= s.renewal) {
			continue
		}
		if err := pace.Wait(ctx); err != nil {
			return fmt.Errorf("pace: %w", err)
		}
		if !g.sessions.Connected(s.id.UID) {
			continue
		}
		err := g.recordConnected(ctx, s.id, func(status *v1alpha1.ClusterStatus) error {
			s.connected(status)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, id := range g.conflicts.over() {
		if err := pace.Wait(ctx); err != nil {
			return fmt.Errorf("pace: %w", err)
		}
		err := g.opts.Clusters.Update(ctx, id, func(status *v1alpha1.ClusterStatus) error {
			clearConflict(status)
			return nil
		})
		if err != nil {
			return fmt.Errorf("record the end of a conflict of %s: %w", id, err)
		}
	}
	g.sessions.forget(reachable)
	return nil
}
