// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

// Frame types and flags of the multiplexer, as a hostile peer writes them.
const (
	data, window, ping, goAway = 0, 1, 2, 3
	syn, ack, fin, rst         = 1, 2, 4, 8
)

func frame(kind byte, flags uint16, id, length uint32) []byte {
	f := make([]byte, 12)
	f[1] = kind
	binary.BigEndian.PutUint16(f[2:], flags)
	binary.BigEndian.PutUint32(f[4:], id)
	binary.BigEndian.PutUint32(f[8:], length)
	return f
}

func with(header []byte, body int) []byte { return append(header, make([]byte, body)...) }

// hostile gives a test the raw end of a link; the other end is a hub's.
func hostile(t testing.TB, budget *tunnel.Budget) (net.Conn, tunnel.Mux) {
	t.Helper()
	theirs, ours := tcpPair(t)
	m, err := tunnel.NewMux(ours, ours, ours, false, tunnel.MuxOptions{Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.Close(), theirs.Close()); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return theirs, m
}

func tcpPair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// send writes until the session is gone, or all was written.
func send(t testing.TB, conn net.Conn, chunks ...[]byte) {
	t.Helper()
	for _, c := range chunks {
		if _, err := conn.Write(c); err != nil {
			return
		}
	}
}

func mustEnd(t testing.TB, m tunnel.Mux, what string) {
	t.Helper()
	select {
	case <-m.Done():
	case <-time.After(5 * time.Second):
		t.Fatalf("%s: the session lives on", what)
	}
}

func mustLive(t testing.TB, conn net.Conn, what string) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	send(t, conn, frame(ping, syn, 0, 4711))
	got := make([]byte, 12)
	for {
		if _, err := io.ReadFull(conn, got); err != nil {
			t.Fatalf("%s: the session has ended: %v", what, err)
		}
		if got[1] == ping && binary.BigEndian.Uint32(got[8:]) == 4711 {
			return
		}
	}
}

func TestFramesThatNoAgentSendsEndTheSession(t *testing.T) {
	cases := map[string][][]byte{
		"a frame of 4 GiB":                      {frame(window, syn, 1, 0), frame(data, 0, 1, 1<<32-1)},
		"a frame just above what is allowed":    {frame(window, syn, 1, 0), frame(data, 0, 1, tunnel.MaxFrame+1)},
		"SYN with data above what is allowed":   {frame(data, syn, 1, tunnel.StreamWindow+1)},
		"a window that grows by 4 GiB":          {frame(window, syn, 1, 0), frame(window, 0, 1, 1<<32-1)},
		"another version":                       {append([]byte{1}, frame(window, syn, 1, 0)[1:]...)},
		"another type":                          {frame(9, 0, 0, 0)},
		"a stream with an id of the hub's kind": {frame(window, syn, 2, 0)},
		"a stream with id 0":                    {frame(window, syn, 0, 0)},
		"the same stream twice":                 {frame(window, syn, 1, 0), frame(window, syn, 1, 0)},
	}
	for name, chunks := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, m := hostile(t, nil)
			send(t, conn, chunks...)
			mustEnd(t, m, name)
		})
	}
}

func TestAStreamMayNotOverrunItsWindow(t *testing.T) {
	t.Parallel()
	conn, m := hostile(t, nil)
	send(t, conn, frame(window, syn, 1, 0))
	for sent := 0; sent <= tunnel.StreamWindow; sent += tunnel.MaxFrame {
		send(t, conn, with(frame(data, 0, 1, tunnel.MaxFrame), tunnel.MaxFrame))
	}
	mustEnd(t, m, "a window overrun")
}

func TestOnlySoManyStreamsMayBeOpen(t *testing.T) {
	t.Parallel()
	conn, m := hostile(t, nil)
	for i := range uint32(tunnel.MaxStreams) {
		send(t, conn, frame(window, syn, 1+2*i, 0))
	}
	mustLive(t, conn, "as many streams as are allowed")
	send(t, conn, frame(window, syn, 1+2*tunnel.MaxStreams, 0))
	mustEnd(t, m, "one stream more")
}

func TestAClosedStreamMakesRoomForAnother(t *testing.T) {
	t.Parallel()
	conn, m := hostile(t, nil)
	accept := make(chan struct{})
	go func() {
		defer close(accept)
		for {
			s, err := m.Accept()
			if err != nil {
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 12)
	for i := range uint32(100) {
		send(t, conn, frame(window, syn|fin, 1+2*i, 0))
		for flags := uint16(0); flags&fin == 0; flags = binary.BigEndian.Uint16(got[2:]) {
			if _, err := io.ReadFull(conn, got); err != nil {
				t.Fatalf("stream %d: %v", i, errors.Join(err, m.Broken()))
			}
		}
	}
	select {
	case <-m.Done():
		t.Fatal("100 streams, one after the other, ended the session")
	default:
	}
	if err := errors.Join(m.Close(), conn.Close()); err != nil {
		t.Error(err)
	}
	<-accept
}

func TestAPingFloodCostsNothing(t *testing.T) {
	conn, m := hostile(t, nil)
	before := runtime.NumGoroutine()
	flood := bytes.Repeat(frame(ping, syn, 0, 1), 1000)
	for range 1000 { // 12 MB of pings from a peer that does not read
		if _, err := conn.Write(flood); err != nil {
			break
		}
		if n := runtime.NumGoroutine() - before; n > tunnel.PingBurst+4 {
			t.Fatalf("%d goroutines more", n)
		}
	}
	mustEnd(t, m, "a ping flood")
}

func TestAStreamFloodCostsNothing(t *testing.T) {
	conn, m := hostile(t, nil)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var flood []byte
	for i := range uint32(10000) {
		flood = append(flood, frame(window, syn, 1+2*i, 0)...)
	}
	send(t, conn, flood)
	mustEnd(t, m, "a stream flood")
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("%d bytes of heap more", grown)
	}
}

func TestAnOpenAndResetFloodEndsTheSession(t *testing.T) {
	t.Parallel()
	conn, m := hostile(t, nil)
	var flood []byte
	for i := range uint32(1000) {
		flood = append(append(flood, frame(window, syn, 1+2*i, 0)...), frame(window, rst, 1+2*i, 0)...)
	}
	send(t, conn, flood)
	mustEnd(t, m, "rapid reset")
}

func TestAFloodOfEmptyFramesEndsTheSession(t *testing.T) {
	t.Parallel()
	for name, f := range map[string][]byte{"window updates": frame(window, 0, 1, 1), "empty data": frame(data, 0, 1, 0), "for no stream": frame(window, 0, 99, 0)} {
		conn, m := hostile(t, nil)
		send(t, conn, frame(window, syn, 1, 0), bytes.Repeat(f, tunnel.ControlBurst+tunnel.ControlRate*5))
		mustEnd(t, m, name)
	}
}

func TestAPeerThatIsNotReadCannotFillTheHub(t *testing.T) {
	t.Parallel()
	budget := tunnel.NewBudget(1 << 20)
	var links []tunnel.Mux
	var conns []net.Conn
	for range 3 {
		conn, m := hostile(t, budget)
		links, conns = append(links, m), append(conns, conn)
		for i := range uint32(tunnel.MaxStreams) {
			send(t, conn, frame(window, syn, 1+2*i, 0))
			for range tunnel.StreamWindow / tunnel.MaxFrame {
				send(t, conn, with(frame(data, 0, 1+2*i, tunnel.MaxFrame), tunnel.MaxFrame))
			}
		}
	}
	for i, m := range links {
		mustEnd(t, m, "streams above the budget")
		if err := conns[i].Close(); err != nil {
			t.Error(err)
		}
	}
	if used := budget.Used(); used > 1<<20+3*tunnel.MaxFrame {
		t.Errorf("%d bytes were held", used)
	}
	for _, m := range links {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if used := budget.Used(); used != 0 {
		t.Errorf("%d bytes are counted after all sessions have ended", used)
	}
}

func TestOurOwnStreamsStayWithinWhatThePeerAllows(t *testing.T) {
	t.Parallel()
	client, server := muxPair(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			s, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				// Answers late, so that many are open at once.
				if _, err := io.Copy(io.Discard, s); err != nil {
					t.Log(err)
				}
				if err := s.Close(); err != nil {
					t.Log(err)
				}
			}()
		}
	}()
	const many = 300
	ended := make(chan error, many)
	for range many {
		go func() {
			s, err := client.Open(ctx)
			if err == nil {
				_, err = s.Write(make([]byte, 10000))
			}
			if err == nil {
				err = s.Close()
			}
			if err == nil {
				_, err = io.Copy(io.Discard, s)
			}
			ended <- err
		}()
	}
	for range many {
		if err := <-ended; err != nil {
			t.Fatal(errors.Join(err, client.Broken(), server.Broken()))
		}
	}
	if err := errors.Join(client.Close(), server.Close()); err != nil {
		t.Error(err)
	}
	<-served
}

func TestOpenWaitsForAFreeStreamAndHearsOfTheEnd(t *testing.T) {
	t.Parallel()
	client, server := muxPair(t)
	for range tunnel.MaxStreams {
		if _, err := client.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := client.Open(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want to wait", err)
	}
	waiting := make(chan error, 1)
	go func() { _, err := client.Open(t.Context()); waiting <- err }()
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-waiting; !errors.Is(err, tunnel.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

func muxPair(t *testing.T) (client, server tunnel.Mux) {
	t.Helper()
	a, b := tcpPair(t)
	client, err := tunnel.NewMux(a, a, a, true, tunnel.MuxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if server, err = tunnel.NewMux(b, b, b, false, tunnel.MuxOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), server.Close()); err != nil {
			t.Error(err)
		}
	})
	return client, server
}
