// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"kumodo.io/convoy/pkg/tunnel"
)

// upgrade makes a websocket of a request and hands it to serve in a goroutine of
// its own: the handler returns, so that the request and the stack that TLS made
// grow are not kept for the life of the session.
func (g *Gateway) upgrade(ctx context.Context, w http.ResponseWriter, r *http.Request, serve func(context.Context, *tunnel.Conn, func())) {
	if r.Header.Get("Origin") != "" {
		// Agents are no browsers: nothing that a web page makes is let in.
		g.metrics.refused("origin")
		tunnel.WriteProblem(w, http.StatusForbidden, tunnel.ReasonBadRequest, "requests with an Origin are refused", 0)
		return
	}
	if g.sessions.count() >= MaxSessions {
		g.metrics.refused("full")
		tunnel.WriteProblem(w, http.StatusServiceUnavailable, tunnel.ReasonOverloaded, "this hub has as many agents as it can take", RetryFull)
		return
	}
	ac, ok := r.Context().Value(admittedKey{}).(*admitted)
	if !ok {
		tunnel.WriteProblem(w, http.StatusInternalServerError, tunnel.ReasonInternal, "connection was not admitted", 0)
		return
	}
	taken := &hijacker{ResponseWriter: w, raw: ac}
	ws, err := websocket.Accept(taken, r, &websocket.AcceptOptions{
		Subprotocols: []string{tunnel.Subprotocol}, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		g.metrics.refused("upgrade")
		return // Accept has answered
	}
	if ws.Subprotocol() != tunnel.Subprotocol {
		g.metrics.refused("subprotocol")
		taken.close()
		return
	}
	conn := tunnel.NewServedConn(taken.keep(), ac.poll)
	if !g.spawn(func() { serve(ctx, conn, ac.established) }) {
		closeConn(conn)
	}
}

// spawn starts a goroutine that Run waits for, unless Run is ending.
func (g *Gateway) spawn(f func()) bool {
	g.ending.RLock()
	defer g.ending.RUnlock()
	if g.ended {
		return false
	}
	g.running.Go(f)
	return true
}

func closeConn(conn *tunnel.Conn) {
	if err := conn.Close(); err != nil {
		return // gone already, which is what was wanted
	}
}

// hijacker lends the connection to the library for the handshake of the websocket,
// and has it back after it: an idle session has no use for the library's buffers.
type hijacker struct {
	http.ResponseWriter
	raw  net.Conn
	conn *hijacked // set by Hijack
	lent *lent
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, brw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take over connection: %w", err)
	}
	// What the server has read already would be lost with its buffer.
	early, err := brw.Reader.Peek(brw.Reader.Buffered())
	if err != nil {
		return nil, nil, fmt.Errorf("take over connection: %w", err)
	}
	h.conn = &hijacked{Conn: conn, raw: h.raw, early: append([]byte(nil), early...)}
	h.lent = &lent{Conn: h.conn}
	// The library reads nothing during its handshake, so nothing stays in its buffer.
	return h.lent, bufio.NewReadWriter(bufio.NewReaderSize(h.lent, hijackBuffer), bufio.NewWriterSize(h.lent, hijackBuffer)), nil
}

// keep takes the connection back from the library.
func (h *hijacker) keep() net.Conn {
	h.lent.back.Store(true)
	return h.conn
}

func (h *hijacker) close() {
	if err := h.raw.Close(); err != nil {
		return // gone already, which is what was wanted
	}
}

// lent is a connection that whoever has it does not close any more once it was
// taken back.
type lent struct {
	net.Conn
	back atomic.Bool
}

func (l *lent) Close() error {
	if l.back.Load() {
		return nil
	}
	return l.Conn.Close() // says what it was
}

// hijacked closes the connection underneath without a farewell that could block.
type hijacked struct {
	net.Conn // TLS, or raw itself
	raw      net.Conn
	early    []byte
}

func (h *hijacked) Read(p []byte) (int, error) {
	if len(h.early) > 0 {
		n := copy(p, h.early)
		if h.early = h.early[n:]; len(h.early) == 0 {
			h.early = nil
		}
		return n, nil
	}
	return h.Conn.Read(p) // callers look for io.EOF
}

func (h *hijacked) Close() error {
	return h.raw.Close() // says what it was
}

// handshake makes the session inside a websocket.
func (g *Gateway) handshake(ctx context.Context, conn *tunnel.Conn, cfg *tls.Config, o tunnel.MuxOptions) (*tunnel.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, tunnel.HandshakeTimeout)
	defer cancel()
	began := time.Now()
	o.Budget = g.budget
	link, err := tunnel.ServerSession(ctx, conn, cfg, o)
	if err != nil {
		g.metrics.refused("handshake")
		return nil, fmt.Errorf("handshake: %w", err)
	}
	g.metrics.handshake.Observe(time.Since(began).Seconds())
	return link, nil
}
