// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"context"
	"sync"
)

// places are how many questions of one sort are answered at once, in all and of each
// namespace, and how many more may wait for that.
type places struct {
	// waiting has a place for each question that is asked, making one for each that is
	// being answered.
	waiting, making chan struct{}
	// ofNamespace are answered at once, askedOfNamespace with those that wait.
	ofNamespace, askedOfNamespace int

	mu sync.Mutex
	// queues by namespace, guarded by mu.
	queues map[string]*queue
	// turns that are had, the oldest first, and how many wait for one; guarded by mu.
	turns  []*turn
	wanted int
}

func newPlaces(all, waiting, ofNamespace, askedOfNamespace int) *places {
	return &places{
		waiting: make(chan struct{}, all+waiting), making: make(chan struct{}, all),
		ofNamespace: ofNamespace, askedOfNamespace: askedOfNamespace, queues: map[string]*queue{},
	}
}

// queue is of one namespace.
type queue struct {
	making chan struct{}
	asked  int // guarded by places.mu
}

// enter waits for a place: first among those of the namespace, so that of each one only
// so many stand before the others.
func (p *places) enter(ctx context.Context, namespace string) (leave func(), err error) {
	select {
	case p.waiting <- struct{}{}:
	default:
		return nil, ErrBusy
	}
	q := p.queue(namespace)
	if q == nil {
		<-p.waiting
		return nil, ErrBusy
	}
	leave = func() {
		p.unqueue(namespace, q)
		<-p.waiting
	}
	for _, places := range []chan struct{}{q.making, p.making} {
		if err := p.take(ctx, places); err != nil {
			leave()
			return nil, err
		}
		before := leave
		leave = func() {
			<-places
			before()
		}
	}
	return leave, nil
}

// take waits for a place; for one of all, those that have had their time make room.
func (p *places) take(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	default:
	}
	if places == p.making {
		p.want(1)
		defer p.want(-1)
	}
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// queue is nil when the namespace has asked for too many.
func (p *places) queue(namespace string) *queue {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[namespace]
	if q == nil {
		q = &queue{making: make(chan struct{}, p.ofNamespace)}
		p.queues[namespace] = q
	}
	if q.asked >= p.askedOfNamespace {
		return nil
	}
	q.asked++
	return q
}

func (p *places) unqueue(namespace string, q *queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.asked--; q.asked == 0 {
		delete(p.queues, namespace)
	}
}
