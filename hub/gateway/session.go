// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

// session is one authenticated link of one Cluster.
type session struct {
	identity
	// Static after construction.
	gw    *Gateway
	link  *tunnel.Session
	since time.Time

	large chan struct{} // its place for a large body

	refused atomic.Pointer[Refusal] // set when it may do nothing but hear why

	mu      sync.Mutex
	greeted bool // hello was heard
	hello   bool // and taken
	renewed time.Time
	todo    todo
	busy    bool // somebody works on todo
	over    bool // the session has ended

	// Owned by who works on todo.
	stream *ordersStream
	end    *time.Timer // of its life
	beat   *time.Timer
	last   time.Time // it ends then at the latest

	// Set with its place in the table, guarded by that.
	target string // UID of the cluster that the agent is on

	// Owned by the sweeper.
	gone int // sweeps in a row that did not find the Cluster
}

type sessionKey struct{}

func withSession(ctx context.Context, owner any) context.Context {
	return context.WithValue(ctx, sessionKey{}, owner)
}

// serveSession starts a session on one connection to the session endpoint. It goes
// on without a goroutine of its own: see poke.
func (g *Gateway) serveSession(ctx context.Context, conn *tunnel.Conn, established func()) {
	s := &session{gw: g, large: make(chan struct{}, 1), since: time.Now()}
	ready := make(chan struct{})
	link, err := g.handshake(ctx, conn, g.trust().session, tunnel.MuxOptions{Streams: g.streams, Owner: s, Ready: ready, Ended: func() {
		select {
		case <-ready:
			s.poke(func(t *todo) { t.ended = true })
		default: // it never came so far
		}
	}})
	if err != nil {
		g.log.V(1).Info("session handshake failed", "peer", conn.RemoteAddr().String(), "cause", err.Error())
		return
	}
	id, bound, err := tunnel.PeerIdentity(link.Peer, g.opts.HubID)
	if err != nil { // VerifyConnection has seen to it
		closeLink(link)
		return
	}
	renewal, err := tunnel.PeerRenewal(link.Peer)
	if err != nil { // the same
		closeLink(link)
		return
	}
	established()
	s.identity, s.link = identity{id, bound, renewal}, link
	life := min(tunnel.SessionTTL+tunnel.HandshakeTimeout, link.Peer.NotAfter.Sub(g.opts.Now()))
	link.Peer = nil
	s.last = s.since.Add(life)
	g.running.Add(1) // until it is over; Run still waits for this goroutine
	g.sessions.enter(s)
	s.end = time.AfterFunc(min(life, HelloTimeout), func() { s.poke(func(t *todo) { t.expired = true }) })
	s.beat = time.AfterFunc(tunnel.BeatInterval, func() { s.poke(func(t *todo) { t.beat = true }) })
	refused := g.authorize(s.identity)
	if refused != nil {
		g.refuseSession(s, refused)
	}
	close(ready)
	if refused != nil {
		g.settle(ctx, s.identity, refused)
	}
	select {
	case <-link.Done(): // maybe before it was ready
		s.poke(func(t *todo) { t.ended = true })
	case <-ctx.Done(): // maybe too late for who closes all sessions
		closeLink(link)
	default:
	}
}

// refuseSession lets a session live only long enough to say why it may not.
func (g *Gateway) refuseSession(s *session, refused *Refusal) {
	s.refused.Store(refused)
	s.allow(RefusedLifetime)
	g.metrics.refused(refused.Reason)
	g.log.Info("session refused", "cluster", s.id.String(), "reason", refused.Reason, "message", refused.Message)
}

// allow sets how long a session lives from now on.
func (s *session) allow(life time.Duration) {
	s.end.Reset(min(life, time.Until(s.last)))
}

// sweep looks at all sessions every SweepInterval: those that went silent, whose
// writes are blocked, or whose Cluster is gone, are ended.
func (g *Gateway) sweep(ctx context.Context) {
	tick := time.NewTicker(SweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, s := range g.sessions.all() {
			if cause := s.dead(); cause != "" {
				g.metrics.dead.WithLabelValues(cause).Inc()
				g.log.Info("session ended", "cluster", s.id.String(), "cause", cause)
				g.spawn(func() { closeLink(s.link) })
			}
		}
	}
}

func (s *session) dead() string {
	if s.refused.Load() == nil {
		if refused := s.gw.authorize(s.identity); refused != nil {
			// Twice in a row, so that a cache that is being filled ends nothing.
			if s.gone++; s.gone > 1 {
				return cause(refused)
			}
		} else {
			s.gone = 0
		}
	}
	switch {
	case s.link.Conn.Silence() > tunnel.ReadSilence:
		return "silent"
	case s.link.Conn.Blocked() > tunnel.WriteTimeout:
		return "blocked"
	}
	return ""
}

// boundBody ends the context of a call with its body.
type boundBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *boundBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close() // nothing to add
}

// sessionRoutes are what an agent may ask for. The Cluster is known from the
// session, never from the request.
func (g *Gateway) sessionRoutes() http.Handler {
	mux := http.NewServeMux()
	route := func(pattern string, needsHello bool, h func(*session, http.ResponseWriter, *http.Request)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			s, ok := r.Context().Value(sessionKey{}).(*session)
			if !ok {
				tunnel.WriteProblem(w, http.StatusInternalServerError, tunnel.ReasonInternal, "no session", 0)
				return
			}
			if refused := s.refused.Load(); refused != nil {
				writeRefusal(w, refused)
				return
			}
			if needsHello && !s.said() {
				tunnel.WriteProblem(w, http.StatusConflict, tunnel.ReasonHelloFirst, "a session starts with hello", 0)
				return
			}
			h(s, w, r)
		})
	}
	route("POST /v1/hello", false, (*session).handleHello)
	route("POST /v1/orders", true, (*session).handleOrders)
	route("GET /v1/blobs/{digest}", true, (*session).handleBlob)
	route("POST /v1/reports", true, (*session).handleReports)
	route("POST /v1/held", true, (*session).handleHeld)
	route("POST /v1/renew", true, (*session).handleRenew)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		tunnel.WriteProblem(w, http.StatusNotFound, tunnel.ReasonNotFound, "this hub does not serve that", 0)
	})
	return mux
}

// greet tells whether this is the first hello.
func (s *session) greet() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.greeted
	s.greeted = true
	return first
}

func (s *session) said() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hello
}
