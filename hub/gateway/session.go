// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"io"
	"net"
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

	streams chan *ordersStream // newest wins
	large   chan struct{}      // its place for a large body
	lives   chan time.Duration // how long it may live from now on; newest wins

	refused atomic.Pointer[Refusal] // set when it may do nothing but hear why

	mu      sync.Mutex
	greeted bool // hello was heard
	hello   bool // and taken
	renewed time.Time

	// Set with its place in the table, guarded by that.
	target string // UID of the cluster that the agent is on

	// Owned by the sweeper.
	gone int // sweeps in a row that did not find the Cluster
}

type sessionKey struct{}

func withSession(ctx context.Context, owner any) context.Context {
	return context.WithValue(ctx, sessionKey{}, owner)
}

// serveSession is the life of one connection to the session endpoint.
func (g *Gateway) serveSession(ctx context.Context, conn *tunnel.Conn, established func()) {
	s := &session{gw: g, streams: make(chan *ordersStream, 1), large: make(chan struct{}, 1), lives: make(chan time.Duration, 1), since: time.Now()}
	ready := make(chan struct{})
	link, err := g.handshake(ctx, conn, g.trust().session, tunnel.MuxOptions{Streams: g.streams, Owner: s, Ready: ready})
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
	g.sessions.enter(s)
	if refused := g.authorize(s.identity); refused != nil {
		g.refuseSession(s, refused)
	}
	close(ready)
	// From here on with a fresh stack: the handshake has made this one grow.
	g.running.Go(func() { s.live(ctx, life) })
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
	for {
		select {
		case s.lives <- life:
			return
		default:
		}
		select {
		case <-s.lives:
		default:
		}
	}
}

// live is the rest of a session's life.
func (s *session) live(ctx context.Context, life time.Duration) {
	g, link, id := s.gw, s.link, s.id
	if refused := s.refused.Load(); refused != nil {
		g.settle(ctx, s.identity, refused)
	}
	s.run(ctx, life)
	closeLink(link)
	g.sessions.remove(s)
	if err := link.Broken(); err != nil {
		g.metrics.dead.WithLabelValues("broke-limit").Inc()
		g.log.Info("session ended", "cluster", id.String(), "cause", err.Error())
	}
}

// run owns the session and its orders stream until the session ends, which it
// does after life at the latest.
func (s *session) run(ctx context.Context, life time.Duration) {
	last := time.Now().Add(life)
	end := time.NewTimer(min(life, HelloTimeout))
	defer end.Stop()
	beat := time.NewTimer(tunnel.BeatInterval)
	defer beat.Stop()
	drain := s.gw.draining
	var stream *ordersStream
	var changed <-chan struct{}
	defer func() { stream.close() }()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-s.link.Done():
			return
		case <-end.C:
			s.gw.metrics.dead.WithLabelValues("lifetime").Inc()
			return
		case allowed := <-s.lives:
			end.Reset(min(allowed, time.Until(last)))
		case next := <-s.streams:
			stream.close()
			stream = next
			if changed, err = stream.update(s.gw, s.id.UID); err == nil && drain == nil {
				err = stream.send(s.gw.goAway())
			}
		case <-changed:
			changed, err = stream.update(s.gw, s.id.UID)
		case <-drain:
			drain = nil
			if stream != nil {
				err = stream.send(s.gw.goAway())
			}
		case <-beat.C:
			beat.Reset(tunnel.BeatInterval)
			if stream != nil {
				err = stream.send(tunnel.OrderEvent{Beat: true})
			}
		}
		if err == nil {
			continue
		}
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			s.gw.metrics.dead.WithLabelValues("stalled").Inc()
			return // the agent does not read its orders; a new session may do better
		}
		stream.close()
		stream, changed = nil, nil // the agent ended it, and opens another
	}
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
