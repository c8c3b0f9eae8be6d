// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

// drain asks all agents to go, and waits for it.
func (g *Gateway) drain() {
	sessions := g.sessions.count()
	g.within = drainWithin(sessions)
	close(g.draining)
	for _, one := range g.sessions.all() {
		one.poke(func(t *todo) { t.drain = true })
	}
	if g.opts.DrainTimeout < 0 || sessions == 0 {
		return
	}
	g.log.Info("asking agents to come back later", "sessions", sessions, "within", g.within.String())
	limit := time.NewTimer(g.opts.DrainTimeout)
	defer limit.Stop()
	select {
	case <-g.sessions.empty():
	case <-limit.C:
		g.log.Info("cutting off the agents that are left", "sessions", g.sessions.count())
	}
}

// drainWithin is the time in which so many agents are asked to go.
func drainWithin(sessions int) time.Duration {
	return max(DrainWithin, time.Duration(sessions)*time.Second/DrainRate)
}

// drains tells whether an ordered end has begun.
func (g *Gateway) drains() bool {
	select {
	case <-g.draining:
		return true
	default:
		return false
	}
}

// goAway is the line that asks an agent to go. Only once draining is closed.
func (g *Gateway) goAway() tunnel.OrderEvent {
	return tunnel.OrderEvent{GoAway: &tunnel.GoAway{
		WithinSeconds: int64((g.within + time.Second - 1) / time.Second), Reason: "the hub ends",
	}}
}
