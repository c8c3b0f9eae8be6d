// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"net"
	"sync"
)

// Streams are those that the peers of many sessions open, for one http.Server. It
// is a net.Listener.
type Streams struct {
	opened chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewStreams for MuxOptions.
func NewStreams() *Streams { return &Streams{opened: make(chan net.Conn), closed: make(chan struct{})} }

// Accept waits for a stream of any session.
func (s *Streams) Accept() (net.Conn, error) {
	select {
	case one := <-s.opened:
		return one, nil
	case <-s.closed:
		return nil, ErrClosed
	}
}

// Close makes Accept return; sessions whose peer opens another stream end.
func (s *Streams) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// Addr means nothing.
func (s *Streams) Addr() net.Addr { return addr{} }

// taker hands the streams of one session over. It has a goroutine while there are
// streams that were announced and not handed over, and none otherwise.
type taker struct {
	mux     *mux
	streams *Streams
	made    <-chan struct{} // closed when mux.session is set
	ready   <-chan struct{} // may be nil
	running sync.WaitGroup

	mu        sync.Mutex
	active    bool
	pending   int   // announced, not handed over
	announced int64 // so far
}

// announce is told of each stream that the peer opens, before the multiplexer
// knows of it.
func (t *taker) announce() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending++
	t.announced++
	if !t.active {
		t.active = true
		t.running.Go(t.run)
	}
}

func (t *taker) run() {
	<-t.made
	if t.ready != nil {
		select {
		case <-t.ready:
		case <-t.mux.session.CloseChan():
		}
	}
	for t.one() {
	}
}

// one hands over one stream and tells whether there are more.
func (t *taker) one() bool {
	t.mu.Lock()
	before := t.announced
	t.mu.Unlock()
	// A stream that was reset at once, or was one too many, never comes.
	ctx, cancel := context.WithTimeout(context.Background(), StreamOpenTimeout)
	defer cancel()
	s, err := t.mux.session.AcceptStreamWithContext(ctx)
	t.mu.Lock()
	switch {
	case err == nil:
		t.pending--
	case t.mux.session.IsClosed() || t.announced == before:
		t.pending = 0
	}
	t.active = t.pending > 0
	more := t.active
	t.mu.Unlock()
	one := &stream{Stream: s, mux: t.mux}
	if err != nil {
		if !errors.Is(err, context.DeadlineExceeded) {
			one.end() // a failed write leaves the peer with half a stream
		}
		return more
	}
	select {
	case t.streams.opened <- one:
	case <-t.streams.closed:
		one.end()
	case <-t.mux.session.CloseChan():
	}
	return more
}
