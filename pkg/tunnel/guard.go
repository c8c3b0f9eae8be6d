// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Layout of a frame header of the multiplexer: version, type, flags (2 bytes),
// stream (4 bytes), length (4 bytes), big endian.
const (
	headerLen = 12

	frameData   = 0
	frameWindow = 1
	framePing   = 2
	frameGoAway = 3

	flagSYN = 1
	flagACK = 2
	flagFIN = 4
	flagRST = 8
)

// bucket is a token bucket of one goroutine.
type bucket struct {
	tokens float64
	last   time.Duration
}

func (b *bucket) take(now time.Duration, rate, burst float64) bool {
	if b.last == 0 {
		b.tokens = burst
	} else {
		b.tokens = min(burst, b.tokens+rate*(now-b.last).Seconds())
	}
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// flow is what the guard knows of one open stream.
type flow struct {
	id     uint32
	local  bool   // we sent FIN
	remote bool   // the peer sent FIN
	unread uint32 // received and not granted again
}

// guard stands between the multiplexer and the connection. Inbound it reads the
// 12-byte headers and ends the session when the peer breaks a limit; outbound it
// joins a header with its body, so that both are one record and one message.
// Both directions together tell which streams are open.
type guard struct {
	conn   io.ReadWriter
	closer io.Closer
	addr   net.Conn
	parity uint32 // of the ids that the peer gives to its streams
	budget *Budget
	unread atomic.Int64 // counted by budget, of all flows

	// Owned by the receiving goroutine.
	head                          [headerLen]byte
	got                           int
	body                          uint32
	syns, pings, resets, controls bucket

	// Owned by the sending goroutine.
	held    [headerLen]byte
	holding bool

	slots chan struct{} // one for each stream of ours that is open

	mu     sync.Mutex
	closed bool
	broken error // what the peer did
	flows  []flow
	theirs int
}

func newGuard(conn io.ReadWriter, closer io.Closer, addr net.Conn, client bool, budget *Budget) *guard {
	g := &guard{conn: conn, closer: closer, addr: addr, budget: budget, slots: make(chan struct{}, MaxStreams)}
	if !client {
		g.parity = 1 // clients count 1, 3, 5
	}
	return g
}

// Read passes on what the peer sent, or fails with ErrGuard.
func (g *guard) Read(p []byte) (int, error) {
	n, err := g.conn.Read(p)
	if broken := g.inspect(p[:n]); broken != nil {
		g.breach(broken)
		return 0, broken
	}
	return n, err // the multiplexer compares io.EOF
}

// breach records what the peer did, the first time.
func (g *guard) breach(broken error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.broken == nil {
		g.broken = broken
	}
}

func (g *guard) inspect(p []byte) error {
	for len(p) > 0 {
		if g.body > 0 {
			skip := min(uint64(g.body), uint64(len(p)))
			g.body -= uint32(skip)
			p = p[skip:]
			continue
		}
		n := copy(g.head[g.got:], p)
		g.got += n
		p = p[n:]
		if g.got < headerLen {
			return nil
		}
		g.got = 0
		if err := g.frame(); err != nil {
			return err
		}
	}
	return nil
}

// frame judges one inbound header.
func (g *guard) frame() error {
	kind, flags := g.head[1], binary.BigEndian.Uint16(g.head[2:])
	id, length := binary.BigEndian.Uint32(g.head[4:]), binary.BigEndian.Uint32(g.head[8:])
	now := time.Since(epoch)
	if g.head[0] != 0 {
		return fmt.Errorf("%w: version %d", ErrGuard, g.head[0])
	}
	if kind != frameData || length == 0 {
		if !g.controls.take(now, ControlRate, ControlBurst) {
			return fmt.Errorf("%w: too many frames without a body", ErrGuard)
		}
	}
	switch kind {
	case framePing:
		if !g.pings.take(now, PingRate, PingBurst) {
			return fmt.Errorf("%w: too many pings", ErrGuard)
		}
		return nil
	case frameGoAway:
		return nil
	case frameWindow:
		if length > StreamWindow {
			return fmt.Errorf("%w: window grows by %d", ErrGuard, length)
		}
	case frameData:
		if length > MaxFrame {
			return fmt.Errorf("%w: frame of %d bytes", ErrGuard, length)
		}
		g.body = length
	default:
		return fmt.Errorf("%w: frame type %d", ErrGuard, kind)
	}
	if flags&flagRST != 0 && !g.resets.take(now, ResetRate, ResetBurst) {
		return fmt.Errorf("%w: too many resets", ErrGuard)
	}
	if flags&flagSYN != 0 {
		if !g.syns.take(now, StreamRate, StreamBurst) {
			return fmt.Errorf("%w: too many new streams", ErrGuard)
		}
		if id == 0 || id%2 != g.parity {
			return fmt.Errorf("%w: stream %d is not the peer's to open", ErrGuard, id)
		}
	}
	if err := g.received(kind, flags, id, length); err != nil {
		return err
	}
	if g.budget != nil && kind == frameData {
		if err := g.budget.relieve(g); err != nil {
			return err
		}
	}
	return nil
}

func (g *guard) received(kind byte, flags uint16, id, length uint32) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if flags&flagSYN != 0 {
		// Not in order of their ids: streams that are opened at once overtake.
		if g.findLocked(id) >= 0 {
			return fmt.Errorf("%w: stream %d opened twice", ErrGuard, id)
		}
		if g.theirs >= MaxStreams {
			return fmt.Errorf("%w: more than %d open streams", ErrGuard, MaxStreams)
		}
		g.theirs++
		g.flows = append(g.flows, flow{id: id})
	}
	i := g.findLocked(id)
	if i < 0 {
		return nil // a stream that we reset; the multiplexer discards the frame
	}
	if kind == frameData && length > 0 {
		f := &g.flows[i]
		if f.unread+length > StreamWindow {
			return fmt.Errorf("%w: stream %d overruns its window", ErrGuard, id)
		}
		f.unread += length
		if g.budget != nil && !g.closed {
			g.budget.take(g, length)
		}
	}
	if flags&flagFIN != 0 {
		g.flows[i].remote = true
	}
	if flags&flagRST != 0 || g.flows[i].local && g.flows[i].remote {
		g.dropLocked(i)
	}
	return nil
}

// Write takes a header, or the body of the header before it.
func (g *guard) Write(p []byte) (int, error) {
	if g.holding {
		g.holding = false
		buf := frames.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
		*buf = append(append((*buf)[:0], g.held[:]...), p...)
		_, err := g.conn.Write(*buf)
		if cap(*buf) <= maxPooled {
			frames.Put(buf)
		}
		if err != nil {
			return 0, fmt.Errorf("write frame: %w", err)
		}
		return len(p), nil
	}
	if len(p) == headerLen {
		g.sent(p)
		if p[1] == frameData && binary.BigEndian.Uint32(p[8:]) > 0 {
			copy(g.held[:], p)
			g.holding = true
			return len(p), nil
		}
	}
	if _, err := g.conn.Write(p); err != nil {
		return 0, fmt.Errorf("write frame: %w", err)
	}
	return len(p), nil
}

// frames are buffers to write a frame in one piece, with what TLS and a websocket
// put around it; maxPooled is the longest that is kept.
var frames = sync.Pool{New: func() any { b := make([]byte, 0, FrameSize+frameRoom); return &b }}

const (
	frameRoom = 128
	maxPooled = MaxFrame + frameRoom
)

// sent records one outbound header.
func (g *guard) sent(p []byte) {
	kind, flags := p[1], binary.BigEndian.Uint16(p[2:])
	id, length := binary.BigEndian.Uint32(p[4:]), binary.BigEndian.Uint32(p[8:])
	if kind != frameData && kind != frameWindow {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if flags&flagSYN != 0 {
		g.flows = append(g.flows, flow{id: id})
	}
	i := g.findLocked(id)
	if i < 0 {
		return
	}
	if kind == frameWindow && length > 0 {
		grant := min(length, g.flows[i].unread)
		g.flows[i].unread -= grant
		g.releaseLocked(grant)
	}
	if flags&flagFIN != 0 {
		g.flows[i].local = true
	}
	if flags&flagRST != 0 || g.flows[i].local && g.flows[i].remote {
		g.dropLocked(i)
	}
}

func (g *guard) findLocked(id uint32) int {
	for i := range g.flows {
		if g.flows[i].id == id {
			return i
		}
	}
	return -1
}

func (g *guard) dropLocked(i int) {
	f := g.flows[i]
	g.flows = append(g.flows[:i], g.flows[i+1:]...)
	g.releaseLocked(f.unread)
	if f.id%2 == g.parity {
		g.theirs--
		return
	}
	g.free()
}

// free gives back the slot of one of our streams.
func (g *guard) free() {
	select {
	case <-g.slots:
	default: // given back already, since the stream was reset while it was opened
	}
}

func (g *guard) releaseLocked(n uint32) {
	if g.budget != nil && !g.closed {
		g.budget.give(g, n)
	}
}

// Close ends the connection underneath at once and gives the budget back.
func (g *guard) Close() error {
	g.mu.Lock()
	if !g.closed {
		for _, f := range g.flows {
			g.releaseLocked(f.unread)
		}
		g.closed = true
	}
	g.mu.Unlock()
	if err := g.closer.Close(); err != nil {
		return fmt.Errorf("close link: %w", err)
	}
	return nil
}

// expel ends a session of whose streams too much is unread, from outside of it.
func (g *guard) expel(broken error) {
	g.breach(broken)
	if err := g.Close(); err != nil {
		discard.Print(err) // the connection is gone either way
	}
}

// RemoteAddr lets the multiplexer name the peer.
func (g *guard) RemoteAddr() net.Addr { return g.addr.RemoteAddr() }

// LocalAddr of the connection underneath.
func (g *guard) LocalAddr() net.Addr { return g.addr.LocalAddr() }

// err tells how the peer broke a limit, nil when it did not.
func (g *guard) err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.broken
}
