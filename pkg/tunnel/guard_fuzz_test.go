// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
)

// fuzzFrame is one frame header with a body of its length, if that is short.
func fuzzFrame(kind byte, flags uint16, id, length uint32) []byte {
	f := make([]byte, headerLen)
	f[1] = kind
	binary.BigEndian.PutUint16(f[2:], flags)
	binary.BigEndian.PutUint32(f[4:], id)
	binary.BigEndian.PutUint32(f[8:], length)
	if kind == frameData && length <= MaxFrame {
		return append(bytes.Clone(f), make([]byte, length)...)
	}
	return f
}

func frameSeeds() [][]byte {
	syn := fuzzFrame(frameWindow, flagSYN, 1, 0)
	return [][]byte{
		nil,
		syn,
		syn[:7],
		append(bytes.Clone(syn), fuzzFrame(frameData, 0, 1, 100)...),
		append(bytes.Clone(syn), fuzzFrame(frameData, flagFIN, 1, 0)...),
		append(bytes.Clone(syn), fuzzFrame(frameWindow, flagRST, 1, 0)...),
		append(bytes.Clone(syn), syn...),
		fuzzFrame(frameData, flagSYN, 3, MaxFrame),
		fuzzFrame(frameData, 0, 1, MaxFrame+1),
		fuzzFrame(frameWindow, 0, 1, 1<<32-1),
		fuzzFrame(framePing, flagSYN, 0, 7),
		fuzzFrame(framePing, flagACK, 0, 7),
		fuzzFrame(frameGoAway, 0, 0, 2),
		fuzzFrame(9, 0xffff, 5, 5),
		fuzzFrame(frameWindow, flagSYN, 2, 0),
	}
}

// fixed is a connection of which all that will ever be read is known.
type fixed struct{ io.Reader }

func (fixed) Write(p []byte) (int, error) { return len(p), nil }

type nowhere struct{ net.Conn }

func (nowhere) RemoteAddr() net.Addr { return addr{} }
func (nowhere) LocalAddr() net.Addr  { return addr{} }

// FuzzGuard feeds the guard what a peer might send, in chunks of several sizes:
// whatever it is, what is held for it stays within the limits.
func FuzzGuard(f *testing.F) {
	for _, seed := range frameSeeds() {
		f.Add(seed, uint8(1))
		f.Add(seed, uint8(250))
	}
	f.Fuzz(func(t *testing.T, sent []byte, chunk uint8) {
		budget := NewBudget(StreamWindow)
		g := newGuard(fixed{bytes.NewReader(sent)}, io.NopCloser(nil), nowhere{}, false, budget)
		buf := make([]byte, int(chunk)+1)
		for {
			n, err := g.Read(buf)
			g.mu.Lock()
			theirs, unread := 0, int64(0)
			for _, one := range g.flows {
				if one.id%2 == g.parity {
					theirs++
				}
				if one.unread > StreamWindow {
					t.Fatalf("a stream holds %d bytes", one.unread)
				}
				unread += int64(one.unread)
			}
			if theirs != g.theirs || theirs > MaxStreams {
				t.Fatalf("%d streams are open and %d are counted", theirs, g.theirs)
			}
			if used := budget.Used(); used != unread || used > StreamWindow+MaxFrame {
				t.Fatalf("streams hold %d bytes and %d are counted", unread, used)
			}
			g.mu.Unlock()
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, ErrGuard) && !errors.Is(err, ErrBudget) {
					t.Fatalf("failed with %v", err)
				}
				if !errors.Is(err, io.EOF) && n != 0 {
					t.Fatalf("%d bytes were passed on with %v", n, err)
				}
				break
			}
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		if used := budget.Used(); used != 0 {
			t.Fatalf("%d bytes are counted after the end", used)
		}
	})
}

// FuzzMux feeds a whole multiplexer: whatever is sent, the session ends when the
// peer does, and closing waits for nothing.
func FuzzMux(f *testing.F) {
	for _, seed := range frameSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		m, err := NewMux(fixed{bytes.NewReader(sent)}, io.NopCloser(nil), nowhere{}, false, MuxOptions{Budget: NewBudget(StreamWindow)})
		if err != nil {
			t.Fatal(err)
		}
		for {
			s, err := m.Accept()
			if err != nil {
				break
			}
			if err := s.Close(); err != nil {
				continue // the session has ended meanwhile
			}
		}
		<-m.Done()
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
