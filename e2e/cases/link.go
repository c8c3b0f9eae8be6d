// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// link is what the agent of one target dials in the place of the hub's gateway, so that a
// case can cut it.
type link struct {
	listener net.Listener
	to       string
	wg       sync.WaitGroup
	stop     context.CancelFunc

	mu    sync.Mutex
	cut   bool                  // what dials in is closed at once
	conns map[net.Conn]struct{} // both ends of each connection
	met   int                   // connections that came while it was cut
}

// newLink listens on loopback and passes on to an address what comes in, until close.
func newLink(ctx context.Context, to string) (*link, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("link: %w", err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &link{listener: listener, to: to, stop: stop, conns: map[net.Conn]struct{}{}}
	l.wg.Go(func() {
		for {
			down, err := listener.Accept()
			if err != nil {
				return // closed
			}
			l.wg.Go(func() { l.pass(ctx, down) })
		}
	})
	return l, nil
}

// url that an agent is to dial.
func (l *link) url() string { return "wss://" + l.listener.Addr().String() }

// pass moves bytes of one connection both ways until one end is closed.
func (l *link) pass(ctx context.Context, down net.Conn) {
	defer l.forget(down)
	if !l.keep(down) {
		return
	}
	var dialer net.Dialer
	up, err := dialer.DialContext(ctx, "tcp", l.to)
	if err != nil {
		return // the hub is away: so it is for whoever dialled
	}
	defer l.forget(up)
	if !l.keep(up) {
		return
	}
	done := make(chan struct{}, 2)
	move := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from) // whatever ended it, the other end is told by a close
		done <- struct{}{}
	}
	l.wg.Go(func() { move(up, down) })
	l.wg.Go(func() { move(down, up) })
	<-done // an end that is closed, or was cut, ends both ways
}

// keep takes a connection into account, unless the link is cut.
func (l *link) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		l.met++
		return false
	}
	l.conns[c] = struct{}{}
	return true
}

func (l *link) forget(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	_ = c.Close() // it may be closed already
}

// set cuts the link, with all that goes through it, or lets it be whole again. It gives
// how many connections were tried since it was set last, while it was cut.
func (l *link) set(cut bool) (tried int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tried, l.met, l.cut = l.met, 0, cut
	if cut {
		for c := range l.conns {
			_ = c.Close() // it may be closed already
		}
	}
	return tried
}

func (l *link) isCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut
}

// carries says whether there is a connection through it.
func (l *link) carries() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns) > 1
}

func (l *link) close() error {
	err := l.listener.Close()
	l.stop()
	l.set(true)
	l.wg.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("link: %w", err)
	}
	return nil
}
