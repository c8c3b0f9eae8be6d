// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
)

// reads are buffers of receivers that have something to read.
var reads = sync.Pool{New: func() any { b := make([]byte, readSize); return &b }}

// wait for bytes, on a stack that stays small, and leave it to a fresh goroutine to
// read them.
func (m *serverMux) wait() {
	if err := m.poll.wait(); err != nil {
		m.finish()
		return
	}
	go m.receive()
}

// receive reads until there is nothing, or the session ends.
func (m *serverMux) receive() {
	buf := reads.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
	defer reads.Put(buf)
	for {
		n, err := m.guard.Read(*buf)
		if broken := m.feed((*buf)[:n]); broken != nil {
			m.guard.breach(broken)
			err = broken
		}
		switch {
		case err == nil:
		case errors.Is(err, errIdle) && m.poll != nil:
			go m.wait()
			return
		default:
			m.finish()
			return
		}
	}
}

// finish is the receiver's end, and the session's.
func (m *serverMux) finish() {
	m.shut()
	close(m.received)
}

// feed takes what was read. What is cut off in the middle goes on with the next.
func (m *serverMux) feed(p []byte) error {
	for len(p) > 0 {
		if m.left > 0 {
			part := p[:min(uint32(len(p)), m.left)]
			if m.into != nil {
				m.into.push(part)
			}
			p = p[len(part):]
			if m.left -= uint32(len(part)); m.left == 0 {
				m.into = nil
			}
			continue
		}
		n := copy(m.head[m.got:], p)
		m.got += n
		p = p[n:]
		if m.got < headerLen {
			return nil
		}
		m.got = 0
		if err := m.frame(); err != nil {
			return err
		}
	}
	return nil
}

// frame acts on a header, which the guard has judged.
func (m *serverMux) frame() error {
	kind, flags := m.head[1], binary.BigEndian.Uint16(m.head[2:])
	id, length := binary.BigEndian.Uint32(m.head[4:]), binary.BigEndian.Uint32(m.head[8:])
	switch kind {
	case framePing:
		if flags&flagSYN != 0 {
			return m.reply(framePing, flagACK, 0, length)
		}
		m.mu.Lock()
		answer := m.pings[length]
		delete(m.pings, length)
		m.mu.Unlock()
		if answer != nil {
			close(answer)
		}
		return nil
	case frameGoAway:
		if length != 0 {
			return fmt.Errorf("%w: it went away with code %d", ErrGuard, length)
		}
		m.mu.Lock()
		m.away = true
		m.mu.Unlock()
		return nil
	}
	if kind == frameData {
		m.left = length
	}
	if flags&flagSYN != 0 {
		if err := m.incoming(id); err != nil {
			return err
		}
	}
	m.mu.Lock()
	s := m.findLocked(id)
	m.mu.Unlock()
	if s == nil {
		return nil // one that was reset: what comes for it goes nowhere
	}
	if err := s.flags(flags); err != nil {
		return err
	}
	if kind == frameData {
		m.into = s
		return nil
	}
	return s.grow(length)
}

// incoming is a stream that the peer opens.
func (m *serverMux) incoming(id uint32) error {
	s := newServerStream(m, id)
	s.accepted = false
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return ErrClosed
	}
	if m.leaving {
		m.mu.Unlock()
		return m.reply(frameWindow, flagRST, id, 0)
	}
	m.open = append(m.open, s)
	m.mu.Unlock()
	if m.streams != nil {
		m.aside.Go(func() { m.hand(s) })
		return nil
	}
	select {
	case m.accepts <- s:
		return nil
	default: // nobody takes them
		m.drop(s)
		return m.reply(frameWindow, flagRST, id, 0)
	}
}

// hand a stream to the server of all sessions' streams.
func (m *serverMux) hand(s *serverStream) {
	if m.ready != nil {
		select {
		case <-m.ready:
		case <-m.done:
			return
		}
	}
	if err := s.accept(); err != nil {
		m.cut() // a failed write leaves the peer with half a stream
		return
	}
	select {
	case m.streams.opened <- s:
	case <-m.streams.closed:
		m.cut()
	case <-m.done:
	}
}
