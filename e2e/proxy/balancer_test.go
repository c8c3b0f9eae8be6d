// SPDX-License-Identifier: Apache-2.0

//go:build debian

package proxy_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"
)

// TestAnAgentBehindABalancerThatEndsTLS has a gateway that knows no TLS of its
// own outside the websocket, and records what the balancer could read.
func TestAnAgentBehindABalancerThatEndsTLS(t *testing.T) {
	t.Parallel()
	ctx := within(t, patience)
	s := newSite(ctx, t, shared.open, "numbat")
	m := newMiddle(ctx, t, s)
	record := &recording{}
	tap, err := newTap(ctx, m.network, net.JoinHostPort("127.0.0.1", tapPort), m.network, m.gateway().address, record.open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tap.close(); err != nil {
			t.Error(err)
		}
	})
	recorded := upstream{plain: true, address: net.JoinHostPort("127.0.0.1", tapPort)}

	m.nginx(ctx, recorded, 60*time.Second)
	way := exit{gateway: m.balanced(), outerCA: shared.company.pem}
	s.install(ctx, way)
	s.joined(ctx)
	a := s.release(ctx, "settings", settings("marked-plain-text-1"))
	a.ready(ctx, "")

	s.step("an idle cut of 60 seconds does not end a session", func(t *testing.T) {
		s.keeps(ctx, 75*time.Second)
		a.ready(ctx, a.push(ctx, settings("marked-plain-text-2")))
		if n := s.sessions(ctx); n != 1 {
			t.Errorf("%d sessions, want the first one", n)
		}
	})
	s.step("what nginx could read is nothing but TLS inside the websocket", func(t *testing.T) {
		record.wantOnlyTLS(t)
		wantNone(t, record.bytes(), secretsOf(t, s, "marked-plain-text", "settings", a.name))
	})
	s.step("haproxy in its place", func(t *testing.T) {
		m.end(ctx)
		m.haproxy(ctx, recorded, 60*time.Second)
		a.ready(ctx, a.push(ctx, settings("haproxy")))
		a.onEdge(ctx, "settings", "haproxy")
		record.wantOnlyTLS(t)
	})
}

// TestAnAgentBehindABalancerThatMakesTLSAgain has balancers that verify the
// gateway's own certificate, cut early and are reloaded.
func TestAnAgentBehindABalancerThatMakesTLSAgain(t *testing.T) {
	t.Parallel()
	ctx := within(t, patience)
	s := newSite(ctx, t, shared.secure, "bilby")
	m := newMiddle(ctx, t, s)
	m.haproxy(ctx, m.gateway(), 60*time.Second)
	s.install(ctx, exit{gateway: m.balanced(), outerCA: shared.company.pem})
	s.joined(ctx)
	a := s.release(ctx, "settings", settings("haproxy"))
	a.ready(ctx, "")

	s.step("nginx in its place, which is reloaded and lets go of what it had", func(t *testing.T) {
		m.end(ctx)
		m.nginx(ctx, m.gateway(), 60*time.Second)
		a.ready(ctx, a.push(ctx, settings("nginx")))
		before := s.sessions(ctx)
		m.nginxConfig(m.gateway(), 20*time.Second)
		m.reload(ctx)
		// Nothing waits for the end of the session: what is pushed meanwhile arrives.
		a.ready(ctx, a.push(ctx, settings("reloaded")))
		s.reaches(ctx, before+1)
	})
	s.step("an idle cut of 20 seconds ends sessions, and nothing is lost", func(t *testing.T) {
		before := s.sessions(ctx)
		s.poll(ctx, "nginx cuts the session", func() error {
			connected, err := s.metric(ctx, metricConnected)
			if err == nil && connected == 1 && s.sessions(ctx) == before {
				err = fmt.Errorf("it is there")
			}
			return err
		})
		a.edit(ctx, "settings", "drifted")
		a.onEdge(ctx, "settings", "reloaded")
		a.ready(ctx, a.push(ctx, settings("pushed while nobody was there")))
		a.onEdge(ctx, "settings", "pushed while nobody was there")
		s.reaches(ctx, before+1)
	})
}

// keeps watches for a while that the one session stays.
func (s *site) keeps(ctx context.Context, d time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		connected, err := s.metric(ctx, metricConnected)
		if ctx.Err() != nil {
			return
		}
		if n := s.sessions(context.WithoutCancel(ctx)); err != nil || connected != 1 || n != 1 {
			s.t.Fatalf("connected %v, %d sessions, %v; want the first session", connected, n, err)
		}
	}
}

// reaches waits until the agent has made so many sessions.
func (s *site) reaches(ctx context.Context, sessions int) {
	s.t.Helper()
	s.poll(ctx, fmt.Sprintf("there were %d sessions", sessions), func() error {
		if n := s.sessions(ctx); n < sessions {
			return fmt.Errorf("there were %d", n)
		}
		return nil
	})
}
