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
// asked for it: for the source that was told so as long as it was told, for all
// others a short while, since a host can be many tenants' and what one of them has
// there may answer as he likes.
type hosts struct {
	clock clock.PassiveClock

	mu  sync.Mutex
	all map[string]*host
	// waits of sources at a host, by both.
	waits map[stay]time.Time
}

// stay is one source at one host.
type stay struct{ host, who string }

func newHosts(c clock.PassiveClock) *hosts {
	return &hosts{clock: c, all: map[string]*host{}, waits: map[stay]time.Time{}}
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
	// It wants to be left alone from then until then.
	from, until time.Time
}

// enter waits for a place for a source, who. leave is told what came of the visit.
// Where it is not known beforehand who is visited, the name is empty and there is no
// bound.
func (h *hosts) enter(ctx context.Context, name, who string, what visit) (leave func(error), err error) {
	if name == "" {
		return func(error) {}, nil
	}
	at := h.hold(name)
	if err := h.closed(name, who, at); err != nil {
		h.release(name, who, at, nil)
		return nil, err
	}
	if err := at.slots[what].Acquire(ctx, 1); err != nil {
		h.release(name, who, at, nil)
		return nil, err
	}
	// It may have asked to be left alone while this one waited.
	if err := h.closed(name, who, at); err != nil {
		at.slots[what].Release(1)
		h.release(name, who, at, nil)
		return nil, err
	}
	return func(err error) {
		at.slots[what].Release(1)
		h.release(name, who, at, err)
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

// closed is an error while the host wants to be left alone, by all or by this one.
func (h *hosts) closed(name, who string, at *host) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.Now()
	wait := max(at.until.Sub(now), h.waits[stay{name, who}].Sub(now))
	if wait <= 0 {
		return nil
	}
	return &fault.Error{Class: fault.ClassRateLimited, RetryAfter: wait, Err: fmt.Errorf("%s asked to be left alone: it is not asked for another %s", name, wait.Round(time.Second))}
}

func (h *hosts) release(name, who string, at *host, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at.users--
	now := h.clock.Now()
	var limited *fault.Error
	if errors.As(err, &limited) && limited.RetryAfter > 0 {
		h.waitLocked(stay{name, who}, now, limited.RetryAfter)
		at.rest(now, limited.RetryAfter)
	}
	if at.users == 0 && at.opens().Before(now) {
		delete(h.all, name)
	}
}

// rest closes the host for all, not for long, and not again before it was open as
// long: one who has many sources there that are all told to wait cannot keep it closed.
func (at *host) rest(now time.Time, wait time.Duration) {
	switch {
	case now.Before(at.until): // of a visit that was under way when it closed
		if until := now.Add(wait); until.After(at.until) {
			at.until = until
		}
	case now.Before(at.opens()):
		return
	default:
		at.from, at.until = now, now.Add(wait)
	}
	if last := at.from.Add(maxHostWait); at.until.After(last) {
		at.until = last
	}
}

// opens is when it may be closed again.
func (at *host) opens() time.Time { return at.until.Add(at.until.Sub(at.from)) }

// waitLocked remembers how long a source is to wait.
func (h *hosts) waitLocked(at stay, now time.Time, wait time.Duration) {
	if _, known := h.waits[at]; !known && len(h.waits) >= maxWaits {
		h.dropWaitsLocked(now)
	}
	if until := now.Add(min(wait, maxSourceWait)); until.After(h.waits[at]) {
		h.waits[at] = until
	}
}

// dropWaitsLocked forgets the waits that are over; if there are none, the one that
// ends first.
func (h *hosts) dropWaitsLocked(now time.Time) {
	var first stay
	var soonest time.Time
	for at, until := range h.waits {
		if !until.After(now) {
			delete(h.waits, at)
			continue
		}
		if soonest.IsZero() || until.Before(soonest) {
			first, soonest = at, until
		}
	}
	if len(h.waits) >= maxWaits {
		delete(h.waits, first)
	}
}

// dropIdleLocked forgets the hosts that nobody is at. What they asked for is
// forgotten with them, rather than that the map grows with names that tenants write;
// the sources that they told so still wait.
func (h *hosts) dropIdleLocked() {
	for name, at := range h.all {
		if at.users == 0 {
			delete(h.all, name)
		}
	}
}
