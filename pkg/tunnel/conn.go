// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	ws     *websocket.Conn
	local  net.Addr
	remote net.Addr

	// Owned by the reader.
	msg io.Reader

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
	c := &Conn{ws: ws, local: local, remote: remote}
	c.lastRead.Store(int64(time.Since(epoch)))
	return c, nil
}

// Read reads on through the binary messages of the peer.
func (c *Conn) Read(p []byte) (int, error) {
	for {
		if c.msg == nil {
			// The background context makes the library register no callback a frame.
			typ, r, err := c.ws.Reader(context.Background())
			if err != nil {
				return 0, fmt.Errorf("read websocket: %w", err)
			}
			if typ != websocket.MessageBinary {
				return 0, errors.Join(fmt.Errorf("%w: text message", ErrGuard), c.Close())
			}
			c.msg = r
		}
		n, err := c.msg.Read(p)
		if n > 0 {
			c.lastRead.Store(int64(time.Since(epoch)))
			c.in.Add(int64(n))
		}
		if errors.Is(err, io.EOF) {
			c.msg, err = nil, nil
			if n == 0 {
				continue
			}
		}
		if err != nil {
			return n, fmt.Errorf("read websocket: %w", err)
		}
		return n, nil
	}
}

// Write sends p as one message.
func (c *Conn) Write(p []byte) (int, error) {
	c.writeStarted.Store(int64(time.Since(epoch)))
	err := c.ws.Write(context.Background(), websocket.MessageBinary, p)
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
	if err := c.ws.CloseNow(); err != nil && !errors.Is(err, net.ErrClosed) {
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
