// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"net"

	"kumodo.io/convoy/pkg/tunnel"
)

// todo is what there is to do for a session. Newer things replace older ones.
type todo struct {
	stream  *ordersStream // a new one
	changed bool          // its orders, maybe
	beat    bool
	drain   bool
	expired bool
	ended   bool
}

// poke adds to what there is to do. It does not block: a goroutine works on it
// until nothing is left. A session at rest has none.
func (s *session) poke(add func(*todo)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	add(&s.todo)
	if !s.busy {
		s.busy = true
		go s.attend() // Run waits for the session's end, and so for this
	}
}

// give the session a new stream of orders, unless it has ended. The newest wins.
func (s *session) give(stream *ordersStream) {
	var old *ordersStream
	taken := false
	s.poke(func(t *todo) {
		old, t.stream, taken = t.stream, stream, true
	})
	old.close() // was never served
	if !taken {
		stream.close()
	}
}

// attend does what there is to do. There is one at a time.
func (s *session) attend() {
	for {
		s.mu.Lock()
		t := s.todo
		s.todo = todo{}
		if t == (todo{}) {
			s.busy = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if !s.do(t) {
			s.finish()
			return
		}
	}
}

// do tells whether the session goes on.
func (s *session) do(t todo) bool {
	if t.stream != nil {
		s.stream.close()
		s.stream = t.stream
	}
	if t.expired {
		s.gw.metrics.dead.WithLabelValues("lifetime").Inc()
	}
	if t.expired || t.ended {
		return false
	}
	if t.beat {
		s.beat.Reset(tunnel.BeatInterval)
	}
	if s.stream == nil || s.refused.Load() != nil {
		return true
	}
	err := s.exchange(t)
	if err == nil {
		return true
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		s.gw.metrics.dead.WithLabelValues("stalled").Inc()
		return false // the agent does not read its orders; a new session may do better
	}
	s.stream.close()
	s.stream = nil // the agent ended it, and opens another
	return true
}

// exchange sends what is due on the stream of orders.
func (s *session) exchange(t todo) error {
	if t.stream != nil || t.changed {
		if err := s.stream.update(s.gw, s.id.UID); err != nil {
			return err
		}
	}
	if t.drain || t.stream != nil && s.gw.drains() {
		if err := s.stream.send(s.gw.goAway()); err != nil {
			return err
		}
	}
	if t.beat {
		return s.stream.send(tunnel.OrderEvent{Beat: true})
	}
	return nil
}

// finish ends a session for good.
func (s *session) finish() {
	s.mu.Lock()
	s.over = true
	left := s.todo.stream
	s.todo = todo{}
	s.mu.Unlock()
	left.close()
	s.stream.close()
	s.end.Stop()
	s.beat.Stop()
	closeLink(s.link)
	s.gw.sessions.remove(s)
	if err := s.link.Broken(); err != nil {
		s.gw.metrics.dead.WithLabelValues("broke-limit").Inc()
		s.gw.log.Info("session ended", "cluster", s.id.String(), "cause", err.Error())
	}
	s.gw.running.Done()
}

// ordersChanged is told that the orders of a Cluster, by UID, have changed, or that
// their head has. It does not block.
func (g *Gateway) ordersChanged(clusterUID string) {
	if one, err := g.sessions.find(clusterUID); err == nil { // else there is nobody to tell
		one.poke(func(t *todo) { t.changed = true })
	}
}
