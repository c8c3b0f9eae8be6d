// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// epoch is the origin of the monotonic times kept as plain numbers.
var epoch = time.Now()

// Conn carries bytes in binary messages of a websocket. One reader and one
// writer at a time. There are no deadlines: handshakes are bounded by a context,
// and what follows by whoever watches Silence and Blocked.
type Conn struct {
	carrier carrier
	poll    *Poll // nil: reads wait
	local   net.Addr
	remote  net.Addr

	lastRead     atomic.Int64 // since epoch
	writeStarted atomic.Int64 // since epoch, 0 when no write is under way
	in, out      atomic.Int64
}

// NewConn wraps a websocket that speaks Subprotocol.
func NewConn(ws *websocket.Conn, local, remote net.Addr) (*Conn, error) {
	if ws.Subprotocol() != Subprotocol {
		return nil, errors.Join(ErrSubprotocol, ws.CloseNow())
	}
	ws.SetReadLimit(MaxMessage)
	return newConn(&library{ws: ws}, nil, local, remote), nil
}

// NewServedConn goes on with the hub's end of a websocket that speaks Subprotocol,
// after its handshake, on the connection that was taken from the HTTP server. poll
// is what lies at the bottom of that connection, or nil.
func NewServedConn(conn net.Conn, poll *Poll) *Conn {
	return newConn(&served{conn: conn}, poll, conn.LocalAddr(), conn.RemoteAddr())
}

func newConn(carrier carrier, poll *Poll, local, remote net.Addr) *Conn {
	c := &Conn{carrier: carrier, poll: poll, local: local, remote: remote}
	c.lastRead.Store(int64(time.Since(epoch)))
	return c
}

// bottom is the Poll underneath, nil when there is none.
func (c *Conn) bottom() *Poll {
	if c == nil {
		return nil
	}
	return c.poll
}

// Read reads on through the binary messages of the peer.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.carrier.Read(p)
	if n > 0 {
		c.lastRead.Store(int64(time.Since(epoch)))
		c.in.Add(int64(n))
	}
	if err != nil && err != error(errIdle) { //nolint:errorlint // TLS looks at the very value, so nothing may wrap it
		err = fmt.Errorf("read websocket: %w", err)
	}
	return n, err
}

// Write sends p as one message.
func (c *Conn) Write(p []byte) (int, error) {
	c.writeStarted.Store(int64(time.Since(epoch)))
	_, err := c.carrier.Write(p)
	c.writeStarted.Store(0)
	if err != nil {
		return 0, fmt.Errorf("write websocket: %w", err)
	}
	c.out.Add(int64(len(p)))
	return len(p), nil
}

// Close ends the connection at once, without a closing handshake, and makes Read
// and Write return.
func (c *Conn) Close() error {
	if err := c.carrier.Close(); err != nil {
		return fmt.Errorf("close websocket: %w", err)
	}
	return nil
}

// Silence is how long ago the last byte was read.
func (c *Conn) Silence() time.Duration {
	return time.Since(epoch) - time.Duration(c.lastRead.Load())
}

// Blocked is how long the write under way has been blocked, 0 when there is none.
func (c *Conn) Blocked() time.Duration {
	started := c.writeStarted.Load()
	if started == 0 {
		return 0
	}
	return time.Since(epoch) - time.Duration(started)
}

// Bytes read and written so far, payload of the websocket.
func (c *Conn) Bytes() (in, out int64) { return c.in.Load(), c.out.Load() }

// LocalAddr of the connection underneath.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr of the connection underneath.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline does nothing, see Conn.
func (c *Conn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing, see Conn.
func (c *Conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing, see Conn.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }
