// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// carrier carries bytes in messages of a websocket. Reads may fail with errIdle.
type carrier interface {
	io.ReadWriteCloser
}

// library is a websocket that the library goes on with: the client's end.
type library struct {
	ws  *websocket.Conn
	msg io.Reader // owned by the reader
}

func (l *library) Read(p []byte) (int, error) {
	for {
		if l.msg == nil {
			// The background context makes the library register no callback a frame.
			typ, r, err := l.ws.Reader(context.Background())
			if err != nil {
				return 0, err // said by Conn
			}
			if typ != websocket.MessageBinary {
				return 0, errors.Join(fmt.Errorf("%w: text message", ErrGuard), l.Close())
			}
			l.msg = r
		}
		n, err := l.msg.Read(p)
		if errors.Is(err, io.EOF) {
			l.msg, err = nil, nil
			if n == 0 {
				continue
			}
		}
		return n, err // said by Conn
	}
}

func (l *library) Write(p []byte) (int, error) {
	if err := l.ws.Write(context.Background(), websocket.MessageBinary, p); err != nil {
		return 0, err // said by Conn
	}
	return len(p), nil
}

func (l *library) Close() error {
	if err := l.ws.CloseNow(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err // said by Conn
	}
	return nil
}

// Opcodes and bits of a websocket's frame header (RFC 6455, section 5.2).
const (
	opContinue, opText, opBinary = 0, 1, 2
	opClose, opPing, opPong      = 8, 9, 10

	bitFin, bitMask, bitsReserved = 0x80, 0x80, 0x70

	maxControl = 125 // bytes in a control frame
	length16   = 126 // a length of two bytes follows
	length64   = 127 // one of eight
)

// served is the hub's end of a websocket. It has no buffers: frames lose their
// headers and masks where they were read to, and whatever is cut off in the middle
// goes on with the next read.
type served struct {
	conn net.Conn

	// Owned by the reader.
	head     [14]byte
	got      int
	op       byte
	fin      bool
	mask     [4]byte
	left     uint64 // of the frame's payload
	masked   int    // of it so far
	message  bool   // a message has begun and not ended
	long     uint64 // bytes of that message so far
	payload  []byte // of the control frame that is read
	controls bucket
	pings    bucket

	mu      sync.Mutex // held by who writes a frame
	ponging atomic.Bool
}

// Read gives the payload of binary messages.
func (s *served) Read(p []byte) (int, error) {
	for {
		n, err := s.conn.Read(p)
		n, broken := s.strip(p[:n])
		if broken != nil {
			return 0, errors.Join(broken, s.Close())
		}
		if n > 0 && errors.Is(err, errIdle) {
			err = nil // the next read says it
		}
		if n > 0 || err != nil || len(p) == 0 {
			return n, err // said by Conn
		}
	}
}

// strip moves the payload in p to its front and says how much it is.
func (s *served) strip(p []byte) (n int, err error) {
	for i := 0; i < len(p); {
		if s.left == 0 { // in a header
			s.head[s.got] = p[i]
			s.got++
			i++
			if s.got < s.headerLen() {
				continue
			}
			s.got = 0
			if err := s.begin(); err != nil {
				return 0, err
			}
		} else {
			part := p[i:min(uint64(len(p)), uint64(i)+s.left)]
			i += len(part)
			s.left -= uint64(len(part))
			for j := range part {
				part[j] ^= s.mask[s.masked%len(s.mask)]
				s.masked++
			}
			if s.op >= opClose {
				s.payload = append(s.payload, part...)
			} else {
				n += copy(p[n:], part)
			}
		}
		if s.left == 0 {
			if err := s.end(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// headerLen is how long the header is of which the first bytes are there.
func (s *served) headerLen() int {
	n := 2
	if s.got < n {
		return n
	}
	switch s.head[1] &^ bitMask {
	case length16:
		n += 2
	case length64:
		n += 8
	}
	return n + len(s.mask)
}

// begin judges a header.
func (s *served) begin() error {
	n := len(s.mask)
	long := uint64(s.head[1] &^ bitMask)
	switch long {
	case length16:
		long = uint64(binary.BigEndian.Uint16(s.head[2:]))
		n += 2
	case length64:
		long = binary.BigEndian.Uint64(s.head[2:])
		n += 8
	}
	copy(s.mask[:], s.head[n-2:])
	s.op, s.fin, s.left, s.masked = s.head[0]&0xf, s.head[0]&bitFin != 0, long, 0
	switch {
	case s.head[0]&bitsReserved != 0 || s.head[1]&bitMask == 0:
		return fmt.Errorf("%w: frame header %x of a websocket", ErrGuard, s.head[:2])
	case s.op >= opClose:
		if !s.fin || long > maxControl {
			return fmt.Errorf("%w: control frame of %d bytes", ErrGuard, long)
		}
	case s.op == opText:
		return fmt.Errorf("%w: text message", ErrGuard)
	case s.op == opContinue && !s.message || s.op == opBinary && s.message || s.op > opBinary:
		return fmt.Errorf("%w: frame type %d of a websocket", ErrGuard, s.op)
	case long > MaxMessage || s.long+long > MaxMessage:
		return fmt.Errorf("%w: message of more than %d bytes", ErrGuard, MaxMessage)
	default:
		s.message = true
		s.long += long
	}
	if s.op >= opClose || long == 0 {
		if !s.controls.take(time.Since(epoch), ControlRate, ControlBurst) {
			return fmt.Errorf("%w: too many frames of a websocket without a body", ErrGuard)
		}
	}
	return nil
}

// end is called when a frame is complete.
func (s *served) end() error {
	switch s.op {
	case opContinue, opBinary:
		if s.fin {
			s.message, s.long = false, 0
		}
		return nil
	case opClose:
		return io.EOF
	case opPing:
		if !s.pings.take(time.Since(epoch), PingRate, PingBurst) {
			return fmt.Errorf("%w: too many pings of a websocket", ErrGuard)
		}
		payload := s.payload
		s.payload = nil
		// A reader never waits for a writer, which ends with the connection, at the latest.
		// A ping that comes while one is being answered needs no answer of its own.
		if s.ponging.CompareAndSwap(false, true) {
			go s.pong(payload)
		}
		return nil
	case opPong:
		s.payload = nil
		return nil
	default:
		return fmt.Errorf("%w: frame type %d of a websocket", ErrGuard, s.op)
	}
}

func (s *served) pong(payload []byte) {
	defer s.ponging.Store(false)
	if _, err := s.frame(opPong, payload); err != nil {
		discard.Print(err) // the reader sees that the connection is gone
	}
}

// Write sends p as one message, or as many as it takes.
func (s *served) Write(p []byte) (int, error) {
	total := 0
	for part := range slices.Chunk(p, MaxMessage) {
		if n, err := s.frame(opBinary, part); err != nil {
			return total + n, err
		}
		total += len(part)
	}
	return total, nil
}

// frame sends one that is a message of its own.
func (s *served) frame(op byte, p []byte) (int, error) {
	buf := frames.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
	out := append((*buf)[:0], bitFin|op)
	switch {
	case len(p) < length16:
		out = append(out, byte(len(p)))
	case len(p) <= math.MaxUint16:
		out = binary.BigEndian.AppendUint16(append(out, length16), uint16(len(p)))
	default:
		out = binary.BigEndian.AppendUint64(append(out, length64), uint64(len(p)))
	}
	out = append(out, p...)
	s.mu.Lock()
	_, err := s.conn.Write(out)
	s.mu.Unlock()
	if *buf = out; cap(out) <= maxPooled {
		frames.Put(buf)
	}
	if err != nil {
		return 0, err // said by Conn
	}
	return len(p), nil
}

func (s *served) Close() error {
	if err := s.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err // said by Conn
	}
	return nil
}
