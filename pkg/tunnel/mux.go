// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/time/rate"
)

// Mux carries many streams over one connection.
type Mux interface {
	// Open starts a stream. It waits while MaxStreams of ours are open.
	Open(ctx context.Context) (net.Conn, error)
	// Accept waits for a stream of the peer.
	Accept() (net.Conn, error)
	// Ping measures the round trip, for at most WriteTimeout.
	Ping() (time.Duration, error)
	// GoAway asks the peer to open no more streams.
	GoAway() error
	// Streams open at the moment, of both sides.
	Streams() int
	// Done is closed when the session has ended.
	Done() <-chan struct{}
	// Broken tells which limit the peer broke, nil when it did not.
	Broken() error
	// Close ends the session and all its streams.
	Close() error
}

// MuxOptions of one session. The zero value works.
type MuxOptions struct {
	// Budget shared by the sessions of a process; nil means none.
	Budget *Budget
	// Owner is handed back by Owner(stream) for each stream of the session.
	Owner any
	// Streams takes the streams that the peer opens, instead of Accept, so that an idle
	// session has no goroutine that waits for one. Nil: Accept is used. Of a hub only.
	Streams *Streams
	// Ready is closed when Owner is ready to be handed streams; nil: it is.
	Ready <-chan struct{}
	// Ended is told when a session of the hub has ended. It must not block. May be nil.
	Ended func()
	// Log takes what the multiplexer says of a peer that misbehaves; nil discards it.
	Log *log.Logger
}

var discard = log.New(io.Discard, "", 0)

type mux struct {
	session *yamux.Session
	guard   *guard
	pace    *rate.Limiter
	owner   any
}

// NewMux starts a session over conn. Closing it closes closer, which must make
// reads and writes of conn return at once. addr names the peer. The agent's end is
// the library's, the hub's is serverMux.
func NewMux(conn io.ReadWriter, closer io.Closer, addr net.Conn, client bool, o MuxOptions) (Mux, error) {
	g := newGuard(conn, closer, addr, client, o.Budget)
	if !client {
		c, _ := addr.(*Conn) // nil for a connection of another kind, which has no Poll
		return newServerMux(g, c.bottom(), o), nil
	}
	cfg := &yamux.Config{
		AcceptBacklog:          MaxStreams,
		EnableKeepAlive:        false, // the agent pings, the hub watches Silence
		KeepAliveInterval:      PingInterval,
		ConnectionWriteTimeout: WriteTimeout,
		MaxStreamWindowSize:    StreamWindow,
		StreamOpenTimeout:      StreamOpenTimeout,
		StreamCloseTimeout:     StreamCloseTimeout,
		Logger:                 discard,
	}
	if o.Log != nil {
		cfg.Logger = o.Log
	}
	s, err := yamux.Client(g, cfg)
	if err != nil {
		return nil, fmt.Errorf("start multiplexer: %w", err)
	}
	return &mux{session: s, guard: g, owner: o.Owner, pace: rate.NewLimiter(OpenRate, OpenBurst)}, nil
}

func (m *mux) Open(ctx context.Context) (net.Conn, error) {
	select {
	case m.guard.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("open stream: %w", ctx.Err())
	case <-m.session.CloseChan():
		return nil, fmt.Errorf("open stream: %w", ErrClosed)
	}
	if err := m.pace.Wait(ctx); err != nil {
		m.guard.free()
		return nil, fmt.Errorf("open stream: %w", err)
	}
	s, err := m.session.OpenStream()
	if err != nil {
		m.guard.free()
		if !errors.Is(err, yamux.ErrRemoteGoAway) {
			err = errors.Join(err, m.session.Close()) // a failed write leaves the peer with half a stream
		}
		return nil, fmt.Errorf("open stream: %w", err)
	}
	return &stream{Stream: s, mux: m}, nil
}

func (m *mux) Accept() (net.Conn, error) {
	s, err := m.session.AcceptStream()
	if err != nil {
		return nil, errors.Join(ErrClosed, err, m.session.Close())
	}
	return &stream{Stream: s, mux: m}, nil
}

func (m *mux) Ping() (time.Duration, error) {
	d, err := m.session.Ping()
	if err != nil {
		return 0, fmt.Errorf("ping: %w", err)
	}
	return d, nil
}

func (m *mux) GoAway() error {
	if err := m.session.GoAway(); err != nil {
		return fmt.Errorf("go away: %w", err)
	}
	return nil
}

func (m *mux) Streams() int          { return m.session.NumStreams() }
func (m *mux) Done() <-chan struct{} { return m.session.CloseChan() }

func (m *mux) Broken() error { return m.guard.err() }

func (m *mux) Close() error {
	if err := m.session.Close(); err != nil {
		return fmt.Errorf("close session: %w", err)
	}
	return nil
}

// stream cuts writes to FrameSize, so that streams share the link fairly, and
// ends the session when a write to the connection times out.
type stream struct {
	*yamux.Stream
	mux  *mux
	once sync.Once
}

// Owner of the session that the stream belongs to, as given in MuxOptions.
func Owner(conn net.Conn) any {
	if s, ok := conn.(interface{ sessionOwner() any }); ok {
		return s.sessionOwner()
	}
	return nil
}

func (s *stream) sessionOwner() any { return s.mux.owner }

func (s *stream) Write(p []byte) (int, error) {
	total := 0
	for len(p) > 0 {
		n, err := s.Stream.Write(p[:min(len(p), FrameSize)])
		total += n
		if err != nil {
			if errors.Is(err, yamux.ErrConnectionWriteTimeout) {
				// Half a frame may be out: the session is not usable any more. Its
				// end waits for the sender, so it must not be waited for here.
				s.once.Do(func() { s.end() })
			}
			return total, err // net/http looks for net.Error
		}
		p = p[n:]
	}
	return total, nil
}

func (s *stream) end() {
	if err := s.mux.guard.Close(); err != nil {
		discard.Print(err) // the connection is gone either way
	}
}

// listener gives the streams that the peer opens to an http.Server.
type listener struct{ m Mux }

// Listener accepts the peer's streams of m. Closing it closes nothing else.
func Listener(m Mux) net.Listener { return listener{m} }

func (l listener) Accept() (net.Conn, error) { return l.m.Accept() } // already says what it was
func (l listener) Close() error              { return nil }
func (l listener) Addr() net.Addr            { return addr{} }

type addr struct{}

func (addr) Network() string { return "convoy" }
func (addr) String() string  { return "convoy" }
