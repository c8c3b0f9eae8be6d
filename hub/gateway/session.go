// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

// session is one authenticated link of one Cluster.
type session struct {
	// Static after construction.
	gw     *Gateway
	id     tunnel.ClusterID
	bound  string // fingerprint of the key that joined
	link   *tunnel.Session
	since  time.Time
	refuse *Refusal // set when the session may do nothing but hear why

	streams chan *ordersStream // newest wins

	mu      sync.Mutex
	hello   bool
	renewed time.Time

	// Owned by the sweeper.
	gone int // sweeps in a row that did not find the Cluster
}

type sessionKey struct{}

func withSession(ctx context.Context, owner any) context.Context {
	return context.WithValue(ctx, sessionKey{}, owner)
}

// serveSession is the life of one connection to the session endpoint.
func (g *Gateway) serveSession(ctx context.Context, conn *tunnel.Conn, established func()) {
	s := &session{gw: g, streams: make(chan *ordersStream, 1), since: time.Now()}
	link, err := g.handshake(ctx, conn, g.sessionTLS, s)
	if err != nil {
		g.log.V(1).Info("session handshake failed", "peer", conn.RemoteAddr().String(), "cause", err.Error())
		return
	}
	id, bound, err := tunnel.PeerIdentity(link.Peer, g.opts.HubID)
	if err != nil { // VerifyConnection has seen to it
		closeLink(link)
		return
	}
	established()
	s.id, s.bound, s.link = id, bound, link
	life := min(tunnel.SessionTTL+tunnel.HandshakeTimeout, link.Peer.NotAfter.Sub(g.opts.Now()))
	link.Peer = nil
	if s.refuse = g.authorize(id, bound); s.refuse != nil {
		g.metrics.refused(s.refuse.Reason)
		g.log.Info("session refused", "cluster", id.String(), "reason", s.refuse.Reason)
		life = RefusedLifetime
	} else if old := g.sessions.add(s); old != nil {
		g.metrics.displaced.Inc()
		g.log.Info("session displaced by a newer one", "cluster", id.String(), "old", old.link.Conn.RemoteAddr().String(), "new", conn.RemoteAddr().String())
		closeLink(old.link)
	}
	// From here on with a fresh stack: the handshake has made this one grow.
	g.running.Go(func() { s.live(ctx, life) })
}

// live is the rest of a session's life.
func (s *session) live(ctx context.Context, life time.Duration) {
	g, link, id := s.gw, s.link, s.id
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		serveStreams(g.inner, link)
	}()
	s.run(ctx, life)
	closeLink(link)
	<-accepting
	g.sessions.remove(s)
	if err := link.Broken(); err != nil {
		g.metrics.dead.WithLabelValues("broke-limit").Inc()
		g.log.Info("session ended", "cluster", id.String(), "cause", err.Error())
	}
}

// authorize tells whether the identity is the one that joined, from memory.
func (g *Gateway) authorize(id tunnel.ClusterID, bound string) *Refusal {
	cluster, ok := g.opts.Clusters.ByUID(id.UID)
	if !ok || cluster.Namespace != id.Namespace || cluster.Name != id.Name {
		return refuse(tunnel.ReasonClusterUnknown, "there is no such Cluster")
	}
	if agent := cluster.Status.Agent; agent != nil && fingerprint(agent.BoundKey) == bound {
		g.joined.forget(id.UID)
		return nil
	}
	if g.joined.is(id.UID, bound) {
		return nil // joined a moment ago; the cache does not have it yet
	}
	return refuse(tunnel.ReasonClusterUnknown, "another agent has joined as this Cluster, or none")
}

// run owns the session and its orders stream until the session ends.
func (s *session) run(ctx context.Context, life time.Duration) {
	end := time.NewTimer(life)
	defer end.Stop()
	beat := time.NewTimer(tunnel.BeatInterval)
	defer beat.Stop()
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
		case next := <-s.streams:
			stream.close()
			stream = next
			changed, err = stream.update(s.gw, s.id.UID)
		case <-changed:
			changed, err = stream.update(s.gw, s.id.UID)
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
				g.running.Go(func() { closeLink(s.link) })
			}
		}
	}
}

// ClusterChanged is told that a Cluster, by UID, has changed or gone. A session that
// is not allowed any more ends at once. It does not block.
func (g *Gateway) ClusterChanged(uid string) {
	one, err := g.sessions.find(uid)
	if err != nil {
		return // no session that could end
	}
	g.spawn(func() {
		if refused := g.authorize(one.id, one.bound); refused != nil && refused.Reason != tunnel.ReasonClusterUnknown {
			closeLink(one.link)
		}
	})
}

func (s *session) dead() string {
	if s.gw.authorize(s.id, s.bound) != nil {
		// Twice in a row, so that a cache that is being filled ends nothing.
		if s.gone++; s.gone > 1 {
			return "revoked"
		}
	} else {
		s.gone = 0
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
			if s.refuse != nil {
				writeRefusal(w, s.refuse)
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

func (s *session) said() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hello
}
