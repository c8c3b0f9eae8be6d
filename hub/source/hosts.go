// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/hub/source/fault"
)

// hosts bounds how much is asked of one host at once, and leaves alone those that
// asked for it.
type hosts struct {
	clock clock.PassiveClock

	mu  sync.Mutex
	all map[string]*host
}

// visit is what a host is asked for.
type visit int

const (
	visitLook  visit = iota // refs: short
	visitFetch              // content: long
)

type host struct {
	slots [2]*semaphore.Weighted // by visit
	// Guarded by hosts.mu.
	users int
	until time.Time // it wants to be left alone until then
}

// enter waits for a place. leave is told what came of the visit. Where it is not known
// beforehand who is visited, the name is empty and there is no bound.
func (h *hosts) enter(ctx context.Context, name string, what visit) (leave func(error), err error) {
	if name == "" {
		return func(error) {}, nil
	}
	at := h.hold(name)
	if err := h.closed(name, at); err != nil {
		h.release(name, at, nil)
		return nil, err
	}
	if err := at.slots[what].Acquire(ctx, 1); err != nil {
		h.release(name, at, nil)
		return nil, err
	}
	// It may have asked to be left alone while this one waited.
	if err := h.closed(name, at); err != nil {
		at.slots[what].Release(1)
		h.release(name, at, nil)
		return nil, err
	}
	return func(err error) {
		at.slots[what].Release(1)
		h.release(name, at, err)
	}, nil
}

func (h *hosts) hold(name string) *host {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.all[name]
	if at == nil {
		at = &host{slots: [2]*semaphore.Weighted{semaphore.NewWeighted(maxLooksPerHost), semaphore.NewWeighted(maxFetchesPerHost)}}
		if len(h.all) >= maxHosts {
			h.dropIdleLocked()
		}
		h.all[name] = at
	}
	at.users++
	return at
}

// closed is an error while the host wants to be left alone.
func (h *hosts) closed(name string, at *host) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	wait := at.until.Sub(h.clock.Now())
	if wait <= 0 {
		return nil
	}
	return &fault.Error{Class: fault.ClassRateLimited, RetryAfter: wait, Err: fmt.Errorf("%s asked to be left alone: it is not asked for another %s", name, wait.Round(time.Second))}
}

func (h *hosts) release(name string, at *host, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at.users--
	now := h.clock.Now()
	var limited *fault.Error
	if errors.As(err, &limited) && limited.RetryAfter > 0 {
		if until := now.Add(limited.RetryAfter); until.After(at.until) {
			at.until = until
		}
	}
	if at.users == 0 && !at.until.After(now) {
		delete(h.all, name)
	}
}

// dropIdleLocked forgets the hosts that nobody is at. What they asked for is
// forgotten with them, rather than that the map grows with names that tenants write.
func (h *hosts) dropIdleLocked() {
	for name, at := range h.all {
		if at.users == 0 {
			delete(h.all, name)
		}
	}
}
