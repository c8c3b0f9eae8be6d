// SPDX-License-Identifier: Apache-2.0

//go:build linux

package tunnel

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"testing"
	"time"
)

// pipe is both ends of a TCP connection; the second is a Poll.
func pipe(t *testing.T) (net.Conn, *Poll) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), a.Close(), b.Close()); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return a, NewPoll(b)
}

// take n bytes of p, waiting outside of the read.
func take(t *testing.T, r io.Reader, p *Poll, n int) string {
	t.Helper()
	var out []byte
	buf := make([]byte, 100)
	for len(out) < n {
		got, err := r.Read(buf)
		out = append(out, buf[:got]...)
		if errors.Is(err, errIdle) {
			err = p.wait()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return string(out)
}

func TestAReadOfAPollThatHasNothingComesBack(t *testing.T) {
	t.Parallel()
	theirs, p := pipe(t)
	if !p.start() {
		t.Fatal("reads wait on this system")
	}
	if _, err := p.Read(make([]byte, 1)); !errors.Is(err, errIdle) {
		t.Fatalf("got %v", err)
	}
	if _, err := theirs.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if got := take(t, p, p, 5); got != "hello" {
		t.Errorf("got %q", got)
	}
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("got %v after the end", err)
	}
}

func TestClosingAPollEndsTheWait(t *testing.T) {
	t.Parallel()
	_, p := pipe(t)
	p.start()
	ended := make(chan error, 1)
	go func() { ended <- p.wait() }()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("there was something to read")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("still waits")
	}
}

func TestAConnectionThatIsNoSocketIsReadAsEver(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	p := NewPoll(b)
	if p.start() {
		t.Fatal("it cannot be polled")
	}
	if err := errors.Join(a.Close(), p.Close()); err != nil {
		t.Fatal(err)
	}
}

// dribble writes a byte at a time.
type dribble struct{ net.Conn }

func (d dribble) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := d.Conn.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: k}
}

// What is relied on here is that TLS can be read on from after a deadline has
// passed, in the middle of a record too, and through two layers of it.
func TestTLSInsideTLSGoesOnAfterReadsThatHadNothing(t *testing.T) {
	t.Parallel()
	theirs, p := pipe(t)
	server := &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}, MinVersion: tls.VersionTLS13}
	client := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13} //nolint:gosec // who the peer is, is not what is tested
	outer := tls.Server(p, server)
	inner := tls.Server(outer, server)
	done := make(chan error, 1)
	go func() {
		to := tls.Client(tls.Client(dribble{theirs}, client), client)
		for range 20 {
			if _, err := to.Write([]byte("0123456789")); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	if err := inner.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.start()
	if got := take(t, inner, p, 200); len(got) != 200 {
		t.Errorf("got %d bytes", len(got))
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := inner.Read(make([]byte, 1)); !errors.Is(err, errIdle) {
		t.Errorf("got %v when there was nothing", err)
	}
}
