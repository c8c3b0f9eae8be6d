// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
)

// errIdle is what a read fails with that would have to wait. TLS takes it for a
// deadline that passed and can be read from again.
var errIdle net.Error = idle{}

type idle struct{}

func (idle) Error() string   { return "nothing to read" }
func (idle) Timeout() bool   { return true }
func (idle) Temporary() bool { return true }

// Poll is a connection of which nobody waits in a read: who reads from it, through
// however many layers, comes back when there is nothing, and the wait for more is on
// a stack of its own, that of a goroutine that has called nothing else. On a system
// where that cannot be had, and before ServerSession is done with its handshake,
// reads wait as ever.
type Poll struct {
	net.Conn
	raw   syscall.RawConn // nil: reads wait
	eager atomic.Bool
}

// NewPoll of a connection that nothing was read from.
func NewPoll(conn net.Conn) *Poll {
	p := &Poll{Conn: conn}
	if c, ok := conn.(syscall.Conn); ok && polls {
		if raw, err := c.SyscallConn(); err == nil { // else reads wait
			p.raw = raw
		}
	}
	return p
}

// Read what is there.
func (p *Poll) Read(b []byte) (int, error) {
	if !p.eager.Load() {
		return p.Conn.Read(b) // callers look for io.EOF and net.Error
	}
	return p.now(b)
}

// start makes reads fail with errIdle instead of waiting, if that can be had.
func (p *Poll) start() bool {
	if p == nil || p.raw == nil {
		return false
	}
	p.eager.Store(true)
	return true
}

// wait until there is something to read, or the connection has ended.
func (p *Poll) wait() error {
	if err := p.raw.Read(readable); err != nil {
		return fmt.Errorf("wait for bytes: %w", err)
	}
	return nil
}
