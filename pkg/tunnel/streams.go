// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
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
