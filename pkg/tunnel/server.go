// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// serverMux is the hub's end of a multiplexer. It speaks as the library does at
// the agent's end, and differs in what an idle session holds: no goroutine that
// sends, no buffers, and where its connection is a Poll, nothing but a goroutine
// that waits for bytes with next to no stack.
//
// The receiver is one goroutine at a time: it reads until there is nothing, and
// leaves the wait to a fresh one. It never waits for a write.
type serverMux struct {
	// Static after construction.
	guard   *guard
	poll    *Poll // nil: reads wait
	owner   any
	streams *Streams // nil: Accept is used
	ready   <-chan struct{}
	ended   func()
	accepts chan *serverStream // nil when streams is not
	pace    *rate.Limiter

	done     chan struct{}
	received chan struct{}  // closed when the receiver has ended
	aside    sync.WaitGroup // what the receiver has started

	// turn is held by who writes.
	turn  chan struct{}
	out   [headerLen]byte // guarded by turn
	stuck *time.Timer     // guarded by turn: ends the session when a write takes too long

	mu       sync.Mutex
	closed   bool
	open     []*serverStream
	next     uint32
	leaving  bool // we said GoAway
	away     bool // the peer did
	pings    map[uint32]chan struct{}
	pinged   uint32
	replies  [][headerLen]byte
	replying bool

	// Owned by the receiver.
	head [headerLen]byte
	got  int
	left uint32        // of the body of a data frame
	into *serverStream // whose it is, nil: nobody's any more
}

func newServerMux(g *guard, poll *Poll, o MuxOptions) *serverMux {
	m := &serverMux{
		guard: g, owner: o.Owner, streams: o.Streams, ready: o.Ready, ended: o.Ended, pace: rate.NewLimiter(OpenRate, OpenBurst),
		done: make(chan struct{}), received: make(chan struct{}), turn: make(chan struct{}, 1), next: 2,
	}
	if poll.start() {
		m.poll = poll
	}
	if m.streams == nil {
		m.accepts = make(chan *serverStream, MaxStreams)
	}
	m.stuck = time.AfterFunc(WriteTimeout, m.cut)
	m.stuck.Stop()
	go m.receive()
	return m
}

// cut ends the connection; the receiver sees it.
func (m *serverMux) cut() {
	if err := m.guard.Close(); err != nil {
		discard.Print(err) // the connection is gone either way
	}
}

func (m *serverMux) Open(ctx context.Context) (net.Conn, error) {
	select {
	case m.guard.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("open stream: %w", ctx.Err())
	case <-m.done:
		return nil, fmt.Errorf("open stream: %w", ErrClosed)
	}
	if err := m.pace.Wait(ctx); err != nil {
		m.guard.free()
		return nil, fmt.Errorf("open stream: %w", err)
	}
	m.mu.Lock()
	if m.closed || m.away {
		m.mu.Unlock()
		m.guard.free()
		return nil, fmt.Errorf("open stream: %w", ErrClosed)
	}
	s := newServerStream(m, m.next)
	m.next += 2
	m.open = append(m.open, s)
	// A peer that does not acknowledge a stream answers nothing any more.
	s.timer = time.AfterFunc(StreamOpenTimeout, m.cut)
	m.mu.Unlock()
	if err := m.send(frameWindow, flagSYN, s.id, 0, nil, time.Time{}); err != nil {
		m.cut() // a failed write leaves the peer with half a stream
		return nil, fmt.Errorf("open stream: %w", err)
	}
	return s, nil
}

func (m *serverMux) Accept() (net.Conn, error) {
	select {
	case s := <-m.accepts:
		if err := s.accept(); err != nil {
			return nil, errors.Join(ErrClosed, err, m.Close())
		}
		return s, nil
	case <-m.done:
		return nil, errors.Join(ErrClosed, m.Close())
	}
}

func (m *serverMux) Ping() (time.Duration, error) {
	answer := make(chan struct{})
	m.mu.Lock()
	id := m.pinged
	m.pinged++
	if m.pings == nil {
		m.pings = map[uint32]chan struct{}{}
	}
	m.pings[id] = answer
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.pings, id)
		m.mu.Unlock()
	}()
	start := time.Now()
	if err := m.send(framePing, flagSYN, 0, id, nil, time.Time{}); err != nil {
		return 0, fmt.Errorf("ping: %w", err)
	}
	limit := time.NewTimer(WriteTimeout)
	defer limit.Stop()
	select {
	case <-answer:
		return time.Since(start), nil
	case <-limit.C:
		return 0, fmt.Errorf("ping: %w", ErrTimeout)
	case <-m.done:
		return 0, fmt.Errorf("ping: %w", ErrClosed)
	}
}

func (m *serverMux) GoAway() error {
	m.mu.Lock()
	m.leaving = true
	m.mu.Unlock()
	if err := m.send(frameGoAway, 0, 0, 0, nil, time.Time{}); err != nil {
		return fmt.Errorf("go away: %w", err)
	}
	return nil
}

func (m *serverMux) Streams() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.open)
}

func (m *serverMux) Done() <-chan struct{} { return m.done }

func (m *serverMux) Broken() error { return m.guard.err() }

// Close ends the session and waits for the receiver and what it has started. It is
// not called by these.
func (m *serverMux) Close() error {
	m.shut()
	<-m.received
	m.aside.Wait()
	return nil
}

// shut ends the session, once.
func (m *serverMux) shut() {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return
	}
	m.closed = true
	open := m.open
	m.open = nil
	m.mu.Unlock()
	close(m.done)
	m.cut()
	for _, s := range open {
		s.end()
	}
	if m.ended != nil {
		m.ended()
	}
}

// send writes one frame. A deadline bounds the wait for a turn; a write that has
// begun is bounded by WriteTimeout and ends the session after it.
func (m *serverMux) send(kind byte, flags uint16, id, length uint32, body []byte, deadline time.Time) error {
	if err := m.take(deadline); err != nil {
		return err
	}
	defer func() { <-m.turn }()
	m.stuck.Reset(WriteTimeout)
	defer m.stuck.Stop()
	put(&m.out, kind, flags, id, length)
	if _, err := m.guard.Write(m.out[:]); err != nil {
		m.cut()
		return err
	}
	if len(body) > 0 {
		if _, err := m.guard.Write(body); err != nil {
			m.cut()
			return err
		}
	}
	return nil
}

// take waits for a turn to write.
func (m *serverMux) take(deadline time.Time) error {
	select {
	case <-m.done:
		return ErrClosed
	default:
	}
	select {
	case m.turn <- struct{}{}:
		return nil
	default:
	}
	limit := WriteTimeout
	if !deadline.IsZero() {
		limit = min(limit, time.Until(deadline))
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case m.turn <- struct{}{}:
		return nil
	case <-timer.C:
		return ErrTimeout
	case <-m.done:
		return ErrClosed
	}
}

func put(header *[headerLen]byte, kind byte, flags uint16, id, length uint32) {
	header[0], header[1] = 0, kind
	binary.BigEndian.PutUint16(header[2:], flags)
	binary.BigEndian.PutUint32(header[4:], id)
	binary.BigEndian.PutUint32(header[8:], length)
}

// reply sends a frame without a body that the receiver has to answer with.
func (m *serverMux) reply(kind byte, flags uint16, id, length uint32) error {
	var header [headerLen]byte
	put(&header, kind, flags, id, length)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.replies) >= maxReplies {
		return fmt.Errorf("%w: it takes no answers", ErrGuard)
	}
	m.replies = append(m.replies, header)
	if !m.replying {
		m.replying = true
		m.aside.Go(m.answer)
	}
	return nil
}

func (m *serverMux) answer() {
	for {
		m.mu.Lock()
		replies := m.replies
		m.replies = nil
		m.replying = len(replies) > 0
		m.mu.Unlock()
		if len(replies) == 0 {
			return
		}
		for _, header := range replies {
			if err := m.send(header[1], binary.BigEndian.Uint16(header[2:]), binary.BigEndian.Uint32(header[4:]),
				binary.BigEndian.Uint32(header[8:]), nil, time.Time{}); err != nil {
				m.cut()
				break
			}
		}
	}
}

// find a stream. The lock is held.
func (m *serverMux) findLocked(id uint32) *serverStream {
	if i := slices.IndexFunc(m.open, func(s *serverStream) bool { return s.id == id }); i >= 0 {
		return m.open[i]
	}
	return nil
}

// drop a stream that both sides have closed, or one has reset.
func (m *serverMux) drop(s *serverStream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.open, s); i >= 0 {
		m.open = slices.Delete(m.open, i, i+1)
	}
}
