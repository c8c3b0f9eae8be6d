// SPDX-License-Identifier: Apache-2.0

package observer

import "context"

// queue is of one namespace.
type queue struct {
	making chan struct{}
	asked  int // guarded by Server.mu
}

// enter waits for a place among the previews that are made: first among those of the
// namespace, so that of each one only so many stand before the others.
func (s *Server) enter(ctx context.Context, namespace string) (leave func(), err error) {
	select {
	case s.waiting <- struct{}{}:
	default:
		return nil, ErrBusy
	}
	q := s.queue(namespace)
	if q == nil {
		<-s.waiting
		return nil, ErrBusy
	}
	leave = func() {
		s.unqueue(namespace, q)
		<-s.waiting
	}
	for _, places := range []chan struct{}{q.making, s.making} {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			leave()
			return nil, context.Cause(ctx)
		}
		before := leave
		leave = func() {
			<-places
			before()
		}
	}
	return leave, nil
}

// queue is nil when the namespace has asked for too many.
func (s *Server) queue(namespace string) *queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[namespace]
	if q == nil {
		q = &queue{making: make(chan struct{}, maxPreviewsPerNamespace)}
		s.queues[namespace] = q
	}
	if q.asked >= maxAskedPerNamespace {
		return nil
	}
	q.asked++
	return q
}

func (s *Server) unqueue(namespace string, q *queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.asked--; q.asked == 0 {
		delete(s.queues, namespace)
	}
}
