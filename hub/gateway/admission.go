// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"golang.org/x/time/rate"

	"kumodo.io/convoy/pkg/tunnel"
)

// admission bounds the connections that are not authenticated: how many at once,
// from one address, waiting, per second. What is above is closed before TLS.
type admission struct {
	perIP int // negative: no limit
	slots chan struct{}
	pace  *rate.Limiter

	mu      sync.Mutex
	waiting int
	from    map[string]int
	closed  int64
}

func newAdmission(perIP int) *admission {
	return &admission{
		perIP: perIP, slots: make(chan struct{}, MaxHandshakes), pace: rate.NewLimiter(SessionRate, SessionBurst),
		from: map[string]int{},
	}
}

type admittedKey struct{}

func (a *admission) listen(l net.Listener) net.Listener { return &admittedListener{Listener: l, a: a} }

type admittedListener struct {
	net.Listener
	a *admission
}

// Accept returns connections that take their turn at their first read.
func (l *admittedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err // net/http looks for net.Error
		}
		if err := tunnel.TuneTCP(c); err != nil {
			l.a.turnAway(c)
			continue
		}
		host, _, err := net.SplitHostPort(c.RemoteAddr().String())
		if err != nil {
			host = c.RemoteAddr().String()
		}
		if !l.a.enter(host) {
			l.a.turnAway(c)
			continue
		}
		poll := tunnel.NewPoll(c)
		return &admitted{Conn: poll, poll: poll, a: l.a, host: host}, nil
	}
}

func (a *admission) turnAway(c net.Conn) {
	a.mu.Lock()
	a.closed++
	a.mu.Unlock()
	if err := c.Close(); err != nil {
		return // it is gone already
	}
}

func (a *admission) enter(host string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting >= MaxWaiting || a.perIP >= 0 && a.from[host] >= a.perIP {
		return false
	}
	a.waiting++
	a.from[host]++
	return true
}

func (a *admission) wait() (slot bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), MaxWait)
	defer cancel()
	defer func() {
		a.mu.Lock()
		a.waiting--
		a.mu.Unlock()
	}()
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		return false, fmt.Errorf("%w: %w", ErrCrowded, ctx.Err())
	}
	if err := a.pace.Wait(ctx); err != nil {
		return true, fmt.Errorf("%w: %w", ErrCrowded, err)
	}
	return true, nil
}

// admitted is a connection that counts as a handshake until it is established
// or closed.
type admitted struct {
	net.Conn
	poll *tunnel.Poll // the same
	a    *admission
	host string

	turn    sync.Once
	refused error

	mu   sync.Mutex
	slot bool // holds one of admission.slots
	left bool // counts no more
	took bool // stopped waiting
}

// Read waits for its turn the first time.
func (c *admitted) Read(p []byte) (int, error) {
	c.turn.Do(func() {
		c.mu.Lock()
		c.took = true
		c.mu.Unlock()
		slot, err := c.a.wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.refused = err
		if slot && c.left {
			<-c.a.slots // closed while it waited
		} else {
			c.slot = slot
		}
		if err != nil {
			// At once, so that nothing is answered and no deadline waited for.
			c.a.turnAway(c.Conn)
		}
	})
	if c.refused != nil {
		return 0, c.refused
	}
	return c.Conn.Read(p) // callers look for io.EOF and net.Error
}

// established: the peer is known, its handshake counts no more.
func (c *admitted) established() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		return
	}
	c.left = true
	if c.slot {
		c.slot = false
		<-c.a.slots
	}
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	if !c.took {
		c.a.waiting--
	}
	if c.a.from[c.host]--; c.a.from[c.host] <= 0 {
		delete(c.a.from, c.host)
	}
}

// Close ends the connection and its handshake.
func (c *admitted) Close() error {
	c.established()
	if err := c.Conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close connection: %w", err)
	}
	return nil
}

// handshakes under way.
func (a *admission) handshakes() int { return len(a.slots) }

// turnedAway so far.
func (a *admission) turnedAway() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closed
}
