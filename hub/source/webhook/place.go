// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"
)

// errFull: too many calls wait already.
var errFull = errors.New("too many calls at once")

// places bound how many signatures are checked at once: all together, and about one
// path, so that slow bodies for one leave room for the others.
type places struct {
	all *semaphore.Weighted

	mu    sync.Mutex
	calls int
	paths map[string]*place
}

type place struct {
	slots *semaphore.Weighted
	users int // guarded by places.mu
}

func newPlaces() *places {
	return &places{all: semaphore.NewWeighted(maxChecks), paths: map[string]*place{}}
}

// enter waits for a place.
func (p *places) enter(ctx context.Context, path string) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, placeTimeout)
	defer cancel()
	at := p.hold(path)
	if at == nil {
		return nil, errFull
	}
	if err := at.slots.Acquire(ctx, 1); err != nil {
		p.release(path, at)
		return nil, err
	}
	if err := p.all.Acquire(ctx, 1); err != nil {
		at.slots.Release(1)
		p.release(path, at)
		return nil, err
	}
	return func() {
		p.all.Release(1)
		at.slots.Release(1)
		p.release(path, at)
	}, nil
}

// hold is nil when there are too many.
func (p *places) hold(path string) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls >= maxCalls {
		return nil
	}
	p.calls++
	at := p.paths[path]
	if at == nil {
		at = &place{slots: semaphore.NewWeighted(maxChecksPerPath)}
		p.paths[path] = at
	}
	at.users++
	return at
}

func (p *places) release(path string, at *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls--
	if at.users--; at.users == 0 {
		delete(p.paths, path)
	}
}
