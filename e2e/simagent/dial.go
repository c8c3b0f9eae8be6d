// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

// wire is what a fleet does to the network.
type wire struct {
	// received and sent are bytes of the TCP connections that carry the websockets:
	// the frames and the TLS around them, with its handshakes, but not what TCP and IP
	// add. frames are the bytes of the websockets alone.
	received, sent, frames atomic.Int64
	dials                  atomic.Int64
	// crowd is the most dials of one agent within dialWindow, and shortest the
	// shortest time between two of them, in nanoseconds; 0: nobody has dialed twice.
	crowd, shortest atomic.Int64
}

const (
	// dialWindow is what the dials of one agent are counted in.
	dialWindow = 10 * time.Second
	// maxRecent dials are remembered of each agent.
	maxRecent = 64
)

// dialer of one agent counts what it does. A link dials one connection at a time.
type dialer struct {
	net.Dialer
	wire   *wire
	recent []time.Time
	// dialed is when it last did, in nanoseconds since 1970; 0: never.
	dialed atomic.Int64
}

func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d.note(time.Now())
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err //nolint:wrapcheck // the link says what failed
	}
	if err := tunnel.TuneTCP(conn); err != nil { // the link cannot see through counted
		conn.Close()
		return nil, err //nolint:wrapcheck // says what failed
	}
	return &counted{Conn: conn, wire: d.wire}, nil
}

func (d *dialer) note(now time.Time) {
	d.wire.dials.Add(1)
	d.dialed.Store(now.UnixNano())
	if n := len(d.recent); n > 0 {
		lower(&d.wire.shortest, int64(now.Sub(d.recent[n-1])))
	}
	d.recent = append(d.recent, now)
	for len(d.recent) > maxRecent || now.Sub(d.recent[0]) > dialWindow {
		d.recent = d.recent[1:]
	}
	raise(&d.wire.crowd, int64(len(d.recent)))
}

func raise(to *atomic.Int64, value int64) {
	for old := to.Load(); value > old; old = to.Load() {
		if to.CompareAndSwap(old, value) {
			return
		}
	}
}

func lower(to *atomic.Int64, value int64) {
	for old := to.Load(); old == 0 || value < old; old = to.Load() {
		if to.CompareAndSwap(old, value) {
			return
		}
	}
}

// counted is a connection whose bytes are counted.
type counted struct {
	net.Conn
	wire    *wire
	in, out records
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.wire.received.Add(int64(n))
	c.wire.frames.Add(c.in.inside(p[:n]))
	return n, err //nolint:wrapcheck // as the connection itself
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.wire.sent.Add(int64(n))
	c.wire.frames.Add(c.out.inside(p[:n]))
	return n, err //nolint:wrapcheck // as the connection itself
}

const (
	// recordHeader of TLS: type, version, length.
	recordHeader = 5
	// recordData is the type of a record with application data; of TLS 1.3 it ends
	// with recordEnd bytes, the true type and the tag.
	recordData = 23
	recordEnd  = 17
)

// records follows one direction of a TLS connection.
type records struct {
	header []byte
	left   int
}

// inside gives how many bytes inside TLS the records carry that begin in p. Of the
// handshake, whose records look the same once they are encrypted, it counts those too.
func (r *records) inside(p []byte) int64 {
	total := int64(0)
	for len(p) > 0 {
		if r.left > 0 {
			n := min(r.left, len(p))
			p, r.left = p[n:], r.left-n
			continue
		}
		n := min(recordHeader-len(r.header), len(p))
		r.header, p = append(r.header, p[:n]...), p[n:]
		if len(r.header) < recordHeader {
			break
		}
		r.left = int(r.header[3])<<8 | int(r.header[4])
		if r.header[0] == recordData {
			total += int64(max(0, r.left-recordEnd))
		}
		r.header = r.header[:0]
	}
	return total
}
