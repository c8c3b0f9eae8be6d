// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// masked is a frame as a client sends it.
func masked(first byte, payload string) []byte {
	out := []byte{first}
	switch n := len(payload); {
	case n < length16:
		out = append(out, bitMask|byte(n))
	case n < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, bitMask|length16), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, bitMask|length64), uint64(n))
	}
	mask := []byte{1, 2, 3, 4}
	out = append(out, mask...)
	for i := range payload {
		out = append(out, payload[i]^mask[i%4])
	}
	return out
}

// wire is a connection that gives a piece a read, and keeps what is written.
type wire struct {
	net.Conn
	pieces  [][]byte
	written chan []byte
	closed  bool
}

func (w *wire) Read(p []byte) (int, error) {
	if len(w.pieces) == 0 {
		return 0, errIdle
	}
	n := copy(p, w.pieces[0])
	if w.pieces[0] = w.pieces[0][n:]; len(w.pieces[0]) == 0 {
		w.pieces = w.pieces[1:]
	}
	return n, nil
}

func (w *wire) Write(p []byte) (int, error) {
	w.written <- bytes.Clone(p)
	return len(p), nil
}

func (w *wire) Close() error { w.closed = true; return nil }

// readAll reads until there is nothing more.
func readAll(s *served) (string, error) {
	var out []byte
	buf := make([]byte, 37)
	for {
		n, err := s.Read(buf)
		out = append(out, buf[:n]...)
		if errors.Is(err, errIdle) {
			return string(out), nil
		}
		if err != nil {
			return string(out), err
		}
	}
}

func TestTheHubReadsMessagesHoweverTheyAreCut(t *testing.T) {
	t.Parallel()
	long := string(bytes.Repeat([]byte("0123456789"), 30))
	huge := string(bytes.Repeat([]byte("x"), MaxMessage))
	const binaryFrame, begin, goOn, end, pong = bitFin | opBinary, opBinary, opContinue, bitFin | opContinue, bitFin | opPong
	cases := map[string]struct {
		sent [][]byte
		want string
	}{
		"messages of one frame":                      {[][]byte{masked(binaryFrame, "one"), masked(binaryFrame, ""), masked(binaryFrame, "two")}, "onetwo"},
		"one with a length of two bytes":             {[][]byte{masked(binaryFrame, long), masked(binaryFrame, "then")}, long + "then"},
		"a message in pieces with a pong in between": {[][]byte{masked(begin, "a"), masked(pong, "hello"), masked(goOn, "b"), masked(end, "c"), masked(binaryFrame, "d")}, "abcd"},
		"the longest message":                        {[][]byte{masked(binaryFrame, huge), masked(binaryFrame, "then")}, huge + "then"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := slices.Concat(c.sent...)
			for _, size := range []int{1, 2, 3, 5, 7, 64, len(sent)} {
				s := &served{conn: &wire{pieces: slices.Collect(slices.Chunk(bytes.Clone(sent), size))}}
				got, err := readAll(s)
				if err != nil {
					t.Fatalf("in pieces of %d: %v", size, err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Fatalf("in pieces of %d (-want +got):\n%s", size, diff)
				}
			}
		})
	}
}

func TestFramesThatAreNotAClientsEndTheConnection(t *testing.T) {
	t.Parallel()
	const binaryFrame, begin, end = bitFin | opBinary, opBinary, bitFin | opContinue
	cases := map[string]struct {
		sent []byte
		want error
	}{
		"a frame without a mask":             {append([]byte{binaryFrame, 5}, "hello"...), ErrGuard},
		"a reserved bit":                     {masked(binaryFrame|0x40, "x"), ErrGuard},
		"text":                               {masked(bitFin|opText, "x"), ErrGuard},
		"a type that is not defined":         {masked(bitFin|3, "x"), ErrGuard},
		"a control type that is not defined": {masked(bitFin|11, "x"), ErrGuard},
		"a continuation of nothing":          {masked(end, "x"), ErrGuard},
		"a message inside a message":         {append(masked(begin, "x"), masked(begin, "x")...), ErrGuard},
		"a message that is too long":         {masked(binaryFrame, string(make([]byte, MaxMessage+1))), ErrGuard},
		"one that is too long in pieces":     {append(masked(begin, string(make([]byte, MaxMessage))), masked(end, "x")...), ErrGuard},
		"a length that is negative":          {append([]byte{binaryFrame, bitMask | length64}, bytes.Repeat([]byte{0xff}, 12)...), ErrGuard},
		"a control frame in pieces":          {masked(opPing, "x"), ErrGuard},
		"a control frame that is too long":   {masked(bitFin|opPong, string(make([]byte, maxControl+1))), ErrGuard},
		"frames without end and content":     {bytes.Repeat(masked(bitFin|opPong, ""), ControlBurst+100), ErrGuard},
		"a farewell":                         {masked(bitFin|opClose, "\x03\xe8"), io.EOF},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &wire{pieces: [][]byte{c.sent}}
			if _, err := readAll(&served{conn: w}); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if !w.closed {
				t.Error("the connection was left open")
			}
		})
	}
}

func TestAPingIsAnsweredWithItsContent(t *testing.T) {
	t.Parallel()
	w := &wire{pieces: [][]byte{masked(bitFin|opPing, "are you there")}, written: make(chan []byte, 1)}
	if _, err := readAll(&served{conn: w}); err != nil {
		t.Fatal(err)
	}
	want := append([]byte{bitFin | opPong, 13}, "are you there"...)
	if diff := cmp.Diff(want, <-w.written); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAPeerThatTakesNoAnswersHasOneGoroutineAnsweringItsPings(t *testing.T) {
	t.Parallel()
	ping := masked(bitFin|opPing, "x")
	w := &wire{pieces: [][]byte{bytes.Repeat(ping, PingBurst)}, written: make(chan []byte)}
	s := &served{conn: w}
	if _, err := readAll(s); !errors.Is(err, io.EOF) && err != nil {
		t.Fatal(err)
	}
	if !s.ponging.Load() {
		t.Fatal("nobody answers")
	}
	<-w.written
	select {
	case answer := <-w.written:
		t.Errorf("a second answer was waiting: %x", answer)
	default:
	}
}

func TestTheHubWritesFramesWithoutAMask(t *testing.T) {
	t.Parallel()
	for n, header := range map[int][]byte{
		1:              {bitFin | opBinary, 1},
		length16:       {bitFin | opBinary, length16, 0, length16},
		MaxMessage - 1: {bitFin | opBinary, length16, 0xff, 0xff},
		MaxMessage:     {bitFin | opBinary, length64, 0, 0, 0, 0, 0, 1, 0, 0},
	} {
		w := &wire{written: make(chan []byte, 1)}
		if got, err := (&served{conn: w}).Write(make([]byte, n)); got != n || err != nil {
			t.Fatalf("%d of %d bytes, %v", got, n, err)
		}
		if diff := cmp.Diff(append(header, make([]byte, n)...), <-w.written); diff != "" {
			t.Errorf("%d bytes (-want +got):\n%s", n, diff)
		}
	}
}
