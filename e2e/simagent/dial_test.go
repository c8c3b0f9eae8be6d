// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"
)

func TestBytesInsideTLSAreCountedHoweverRecordsAreCut(t *testing.T) {
	// A record of the handshake, one with 3 bytes of data, one with 300.
	stream := append([]byte{22, 3, 3, 0, 4}, make([]byte, 4)...)
	stream = append(append(stream, 23, 3, 3, 0, 20), make([]byte, 20)...)
	stream = append(append(stream, 23, 3, 3, 1, 61), make([]byte, 317)...)
	for size := 1; size <= len(stream); size++ {
		r, got := records{}, int64(0)
		for at := 0; at < len(stream); at += size {
			got += r.inside(stream[at:min(at+size, len(stream))])
		}
		if got != 303 {
			t.Errorf("in pieces of %d bytes: %d bytes inside, want 303", size, got)
		}
	}
}

func TestWhatAConnectionCarriesInsideTLSIsCountedToTheByte(t *testing.T) {
	cert, _ := inspecting(t)
	here, there := net.Pipe()
	w := &wire{}
	client := tls.Client(&counted{Conn: here, wire: w}, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
	server := tls.Server(there, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true})
	done := make(chan error, 1)
	go func() {
		if err := server.HandshakeContext(t.Context()); err != nil {
			done <- err
			return
		}
		_, err := io.CopyN(server, server, 1000)
		done <- err
	}()
	if err := client.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := client.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := w.frames.Load()
	if _, err := client.Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(client, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := w.frames.Load() - before; got != 2000 {
		t.Errorf("%d bytes inside TLS were counted, want 1000 in each direction", got)
	}
	here.Close()
	there.Close()
}

func TestDialsOfOneAgentAreCountedWithinTheirWindow(t *testing.T) {
	w := &wire{}
	d := &dialer{wire: w}
	start := time.Now()
	for _, after := range []time.Duration{0, 4 * time.Second, 9 * time.Second, 30 * time.Second, 31 * time.Second} {
		d.note(start.Add(after))
	}
	if w.dials.Load() != 5 || w.crowd.Load() != 3 || time.Duration(w.shortest.Load()) != time.Second {
		t.Errorf("dials %d, most within %s %d, shortest pause %s; want 5, 3, 1s", w.dials.Load(), dialWindow, w.crowd.Load(), time.Duration(w.shortest.Load()))
	}
}
