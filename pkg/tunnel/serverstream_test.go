// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

// streamPair is one stream of a session, opened by the agent or by the hub.
func streamPair(t *testing.T, byHub bool) (agent, hub net.Conn, client, server tunnel.Mux) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	client, server = muxPair(t)
	from, to := client, server
	if byHub {
		from, to = server, client
	}
	opened, err := from.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := to.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if byHub {
		return accepted, opened, client, server
	}
	return opened, accepted, client, server
}

func TestMoreThanAWindowGoesThroughAStreamBothWaysAtOnce(t *testing.T) {
	t.Parallel()
	for name, byHub := range map[string]bool{"opened by the agent": false, "opened by the hub": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent, hub, _, server := streamPair(t, byHub)
			want := bytes.Repeat([]byte("0123456789abcdef"), 4*tunnel.StreamWindow/16)
			ended := make(chan error, 4)
			for _, end := range []net.Conn{agent, hub} {
				go func() {
					_, err := end.Write(want)
					ended <- errors.Join(err, end.Close())
				}()
				go func() {
					got, err := io.ReadAll(end)
					if err == nil && !bytes.Equal(got, want) {
						err = errors.New("other bytes came")
					}
					ended <- err
				}()
			}
			for range cap(ended) {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			if n := server.Streams(); n != 0 {
				t.Errorf("%d streams are open after both sides closed theirs", n)
			}
		})
	}
}

func TestAStreamOfTheHubKeepsItsDeadlines(t *testing.T) {
	t.Parallel()
	agent, hub, _, _ := streamPair(t, false)
	timedOut := func(err error) bool {
		var timeout net.Error
		return errors.As(err, &timeout) && timeout.Timeout()
	}
	if err := hub.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := hub.Read(make([]byte, 1)); !timedOut(err) {
		t.Errorf("read: got %v", err)
	}
	if err := hub.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := hub.Write(make([]byte, 2*tunnel.StreamWindow)); !timedOut(err) || n != tunnel.StreamWindow {
		t.Errorf("write that nobody reads: %d bytes, %v", n, err)
	}
	// A deadline that is moved into the past wakes who waits, and one in the future
	// lets it go on.
	if err := hub.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() { _, err := hub.Read(make([]byte, 1)); waiting <- err }()
	if err := hub.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; !timedOut(err) {
		t.Errorf("read that was told to end: got %v", err)
	}
	if err := hub.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := hub.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if errors.Is(tunnel.ErrTimeout, os.ErrDeadlineExceeded) {
		t.Error("two errors are one")
	}
}

func TestWhatCameBeforeAStreamEndedIsReadBeforeItsEnd(t *testing.T) {
	t.Parallel()
	agent, hub, _, _ := streamPair(t, false)
	if _, err := agent.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	if err := agent.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(hub); string(got) != "last words" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if err := hub.Close(); err != nil {
		t.Error(err)
	}
	if _, err := hub.Write([]byte("x")); !errors.Is(err, tunnel.ErrClosed) {
		t.Errorf("wrote after the end: %v", err)
	}
}

func TestTheEndOfASessionEndsWhoWaitsOnItsStreams(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(client, server tunnel.Mux) error{
		"by the hub":   func(_, server tunnel.Mux) error { return server.Close() },
		"by the agent": func(client, _ tunnel.Mux) error { return client.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, hub, client, server := streamPair(t, false)
			waiting := make(chan error, 2)
			go func() { _, err := hub.Read(make([]byte, 1)); waiting <- err }()
			go func() { _, err := hub.Write(make([]byte, 2*tunnel.StreamWindow)); waiting <- err }()
			if err := end(client, server); err != nil {
				t.Fatal(err)
			}
			for range cap(waiting) {
				if err := <-waiting; err == nil || errors.Is(err, io.EOF) {
					t.Errorf("got %v, which could pass for an end in good order", err)
				}
			}
			<-server.Done()
			if _, err := server.Ping(); err == nil {
				t.Error("a ping was answered")
			}
		})
	}
}

func TestAHubThatGoesTakesNoMoreStreams(t *testing.T) {
	t.Parallel()
	client, server := muxPair(t)
	if err := server.GoAway(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Ping(); err != nil { // it has heard of it then
		t.Fatal(err)
	}
	if _, err := client.Open(t.Context()); err == nil {
		t.Error("a stream was opened")
	}
	if _, err := server.Ping(); err != nil {
		t.Errorf("the session has ended: %v", err)
	}
}
