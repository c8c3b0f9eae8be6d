// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
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
	s.mu.Lock()
	s.hello = true
	s.mu.Unlock()
	g := s.gw
	if err := g.recordConnected(r.Context(), s.id, &hello); err != nil {
		// The comparison of sessions and statuses comes back to it.
		g.log.Error(err, "connect could not be recorded", "cluster", s.id.String())
	}
	g.log.V(1).Info("agent connected", "cluster", s.id.String(), "agentVersion", hello.AgentVersion)
	tunnel.WriteJSON(w, tunnel.HelloAnswer{
		HubVersion: g.opts.Version, Hub: g.opts.HubID, Now: g.opts.Now(), OrderKeys: g.opts.OrderKeys(),
	})
}

// recordConnected writes the status of a Cluster with a session, if that changes
// anything. hello is nil when only the session is known.
func (g *Gateway) recordConnected(ctx context.Context, id tunnel.ClusterID, hello *tunnel.Hello) error {
	cluster, ok := g.opts.Clusters.ByUID(id.UID)
	if ok {
		wanted := cluster.Status.DeepCopy()
		connected(wanted, hello)
		if equality.Semantic.DeepEqual(wanted, &cluster.Status) {
			return nil
		}
	}
	err := g.opts.Clusters.Update(ctx, id, func(status *v1alpha1.ClusterStatus) error {
		connected(status, hello)
		return nil
	})
	if err != nil {
		return fmt.Errorf("record connect of %s: %w", id, err)
	}
	return nil
}

// connected is the status of a Cluster with a session. Its conditions are made
// where it is written.
func connected(status *v1alpha1.ClusterStatus, hello *tunnel.Hello) {
	status.Reachable = true
	if hello != nil {
		// An agent may be hostile: what it says of itself is bounded before it is kept.
		versions := slices.Compact(slices.Sorted(slices.Values(hello.APIVersions)))
		versions = slices.DeleteFunc(versions, func(v string) bool { return len(v) > maxWord })
		if len(versions) > maxAPIVersions {
			versions = versions[:maxAPIVersions]
		}
		status.KubernetesVersion = clip(hello.KubernetesVersion)
		status.APIVersions = versions
		status.ClusterUID = clip(hello.TargetUID)
		status.AgentVersion = clip(hello.AgentVersion)
	}
}

func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxWord)], "") }

// watchReachable keeps statuses and sessions together: what a missed write or a
// restart of the hub left behind is put right, and a Cluster that was away for
// Grace is said to be.
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
		away, ok := g.sessions.away(id.UID, g.started)
		if !ok || away < Grace {
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
		if reachable[s.id.UID] || !s.said() {
			continue
		}
		if err := pace.Wait(ctx); err != nil {
			return fmt.Errorf("pace: %w", err)
		}
		if !g.sessions.Connected(s.id.UID) {
			continue
		}
		if err := g.recordConnected(ctx, s.id, nil); err != nil {
			return err
		}
	}
	g.sessions.forget(reachable)
	return nil
}
