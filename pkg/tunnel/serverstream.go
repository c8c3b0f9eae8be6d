// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// serverStream is a stream at the hub's end. What was read of it is freed at once,
// so that one at rest holds nothing.
type serverStream struct {
	mux *serverMux
	id  uint32

	writing sync.Mutex // held for the frames of one Write

	readable, writable chan struct{} // of one: something may have changed

	mu       sync.Mutex
	buf      []byte // not read yet
	consumed uint32 // read, and not granted again
	window   uint64 // what the peer takes
	readBy   time.Time
	writeBy  time.Time
	accepted bool // the peer need not be told that we took it
	closed   bool // we closed it
	finished bool // the peer did
	reset    bool // either did, or the session has ended
	// timer waits for the peer: to acknowledge a stream of ours, or to close one that
	// we have.
	timer *time.Timer
}

func newServerStream(m *serverMux, id uint32) *serverStream {
	return &serverStream{
		mux: m, id: id, readable: make(chan struct{}, 1), writable: make(chan struct{}, 1), window: StreamWindow, accepted: true,
	}
}

// wake who waits at a channel of one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (s *serverStream) sessionOwner() any { return s.mux.owner }

// accept tells the peer that its stream is taken.
func (s *serverStream) accept() error {
	s.mu.Lock()
	s.accepted = true
	s.mu.Unlock()
	return s.mux.send(frameWindow, flagACK, s.id, 0, nil, time.Time{})
}

// push keeps a part of a data frame. The guard has seen to it that it is within
// the window.
func (s *serverStream) push(p []byte) {
	s.mu.Lock()
	s.buf = append(s.buf, p...)
	s.mu.Unlock()
	wake(s.readable)
}

// flags of a frame that came.
func (s *serverStream) flags(flags uint16) error {
	s.mu.Lock()
	if flags&flagACK != 0 && !s.closed {
		s.stopLocked()
	}
	over := false
	if flags&flagFIN != 0 {
		if s.finished {
			s.mu.Unlock()
			return fmt.Errorf("%w: stream %d closed twice", ErrGuard, s.id)
		}
		s.finished = true
		over = s.closed
	}
	if flags&flagRST != 0 {
		s.reset, over = true, true
	}
	if over {
		s.stopLocked()
	}
	s.mu.Unlock()
	if flags&(flagFIN|flagRST) != 0 {
		wake(s.readable)
		wake(s.writable)
	}
	if over {
		s.mux.drop(s)
	}
	return nil
}

func (s *serverStream) stopLocked() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// grow what the peer takes.
func (s *serverStream) grow(n uint32) error {
	s.mu.Lock()
	s.window += uint64(n)
	tooMuch := s.window > maxPeerWindow
	s.mu.Unlock()
	if tooMuch {
		return fmt.Errorf("%w: stream %d takes more than %d bytes", ErrGuard, s.id, maxPeerWindow)
	}
	wake(s.writable)
	return nil
}

// end is told that the session has ended.
func (s *serverStream) end() {
	s.mu.Lock()
	s.reset = true
	s.stopLocked()
	s.mu.Unlock()
	wake(s.readable)
	wake(s.writable)
}

// Read what has come, or wait for it.
func (s *serverStream) Read(p []byte) (int, error) {
	for {
		s.mu.Lock()
		n, by := copy(p, s.buf), s.readBy
		switch {
		case n > 0 || len(p) == 0:
			return n, s.readLocked(n)
		case s.finished:
			s.mu.Unlock()
			wake(s.readable) // for whoever else reads
			return 0, io.EOF
		case s.reset:
			s.mu.Unlock()
			wake(s.readable)
			return 0, ErrClosed
		}
		s.mu.Unlock()
		if err := s.await(s.readable, by); err != nil {
			return 0, err
		}
	}
}

// readLocked takes n bytes off, unlocks, and grants the peer as many again when
// that is worth a frame.
func (s *serverStream) readLocked(n int) error {
	if s.buf = s.buf[n:]; len(s.buf) == 0 {
		s.buf = nil
	}
	s.consumed += uint32(n)
	grant := uint32(0)
	if s.consumed >= StreamWindow/2 && !s.finished && !s.reset {
		grant, s.consumed = s.consumed, 0
	}
	s.mu.Unlock()
	if grant == 0 {
		return nil
	}
	if err := s.mux.send(frameWindow, 0, s.id, grant, nil, time.Time{}); err != nil {
		s.mux.cut() // the peer would wait for ever; what was read stays good
	}
	return nil
}

// await a change, until a deadline if there is one.
func (s *serverStream) await(change <-chan struct{}, by time.Time) error {
	if by.IsZero() {
		<-change
		return nil
	}
	timer := time.NewTimer(time.Until(by))
	defer timer.Stop()
	select {
	case <-change:
		return nil
	case <-timer.C:
		return ErrTimeout
	}
}

// Write cuts p into frames, so that streams share the link fairly, and waits for
// the peer to take them.
func (s *serverStream) Write(p []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	total := 0
	for total < len(p) {
		n, by, err := s.reserve(len(p) - total)
		if err != nil {
			return total, err
		}
		if n == 0 {
			if err := s.await(s.writable, by); err != nil {
				return total, err
			}
			continue
		}
		if err := s.mux.send(frameData, 0, s.id, uint32(n), p[total:total+n], by); err != nil {
			s.mu.Lock()
			s.window += uint64(n) // nothing went out, or nothing matters any more
			s.mu.Unlock()
			return total, err
		}
		total += n
	}
	return total, nil
}

// reserve as much of the peer's window as one frame takes.
func (s *serverStream) reserve(n int) (int, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.reset {
		wake(s.writable)
		return 0, time.Time{}, ErrClosed
	}
	n = int(min(uint64(n), FrameSize, s.window))
	s.window -= uint64(n)
	return n, s.writeBy, nil
}

// Close this side. The peer has StreamCloseTimeout to close the other.
func (s *serverStream) Close() error {
	s.mu.Lock()
	if s.closed || s.reset {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.stopLocked()
	over := s.finished
	if !over {
		s.timer = time.AfterFunc(StreamCloseTimeout, s.abandon)
	}
	flags := uint16(flagFIN)
	if !s.accepted {
		flags |= flagACK
	}
	s.mu.Unlock()
	wake(s.readable)
	wake(s.writable)
	if err := s.mux.send(frameWindow, flags, s.id, 0, nil, time.Time{}); err != nil {
		s.mux.cut() // the peer does not know: nothing on the session can be relied on
		return nil  // closed it is
	}
	if over {
		s.mux.drop(s)
	}
	return nil
}

// abandon a stream that the peer does not close.
func (s *serverStream) abandon() {
	s.mu.Lock()
	gone := s.reset || s.finished
	s.reset = true
	s.mu.Unlock()
	if gone {
		return
	}
	wake(s.readable)
	s.mux.drop(s)
	if err := s.mux.send(frameWindow, flagRST, s.id, 0, nil, time.Time{}); err != nil {
		s.mux.cut()
	}
}

// SetDeadline of reads and writes.
func (s *serverStream) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline also of a read that waits.
func (s *serverStream) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	s.readBy = t
	s.mu.Unlock()
	wake(s.readable)
	return nil
}

// SetWriteDeadline also of a write that waits.
func (s *serverStream) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	s.writeBy = t
	s.mu.Unlock()
	wake(s.writable)
	return nil
}

// LocalAddr of the connection underneath.
func (s *serverStream) LocalAddr() net.Addr { return s.mux.guard.LocalAddr() }

// RemoteAddr of the connection underneath.
func (s *serverStream) RemoteAddr() net.Addr { return s.mux.guard.RemoteAddr() }
