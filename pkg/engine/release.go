// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// release is one Release on this cluster. Its goroutine lives while there is
// something to do and is the only one that talks to the cluster for it; watches and
// the link only leave word.
type release struct {
	runner *Runner
	uid    string
	marks  marks
	log    logr.Logger
	// notify has a place for one wake-up.
	notify chan struct{}
	// ignores are what the newest order leaves to others; nil: nothing.
	ignores atomic.Pointer[ignoreRules]
	// writing is held while the record is written or deleted; taken before mu.
	writing sync.Mutex
	// ruled are the health rules in use; nil: the built-in ones alone.
	ruled atomic.Pointer[ruled]
	// unruled says why those of the order are not in use; empty: they are. Guarded by mu.
	unruled string

	mu sync.Mutex // guards what follows

	running bool // the goroutine lives
	ref     tunnel.ReleaseRef
	// order is the newest accepted one; signed as it came. Sequence 0: none.
	order  tunnel.Order
	signed tunnel.Signed
	// handled is the sequence of the last order whose operation came to an end, good
	// or bad; a bad one is tried again at retryAt.
	handled  int64
	retryAt  time.Time
	retries  int
	carrying bool // an operation is under way
	called   bool // meanwhile somebody let go of what it may have been refused
	attempts attempts
	resumed  bool // the order was under way when the last run ended
	restored bool // the record was read
	stopping bool // done, nothing may start any more

	objects map[manifest.Identity]*object
	drifts  map[*object]time.Time      // to be repaired, since when
	kept    map[*object]map[string]any // live content of some of them
	fights  map[*object]bool           // that others change again and again
	// unjudged were not judged by the health rules in use yet; waits are objects of which
	// another health is told at a time.
	unjudged map[*object]bool
	waits    map[*object]time.Time
	applied  *Render
	attempt  *Render
	total    int // objects in the wanted render
	// round is the way through the hooks' phases that is under way or was last; nil: none.
	// runs of hooks, oldest first, each changed under mu only.
	round   *HookRound
	runs    []*HookRun
	formers []Former // of hooks of the render applied last
	// A hook that failed before a restart rests until then, for the order of that
	// sequence.
	restUntil time.Time
	restFor   int64
	// scaled are objects whose number of replicas is left to an autoscaler that was found;
	// whether it is there still is looked at rescaleAt.
	scaled    map[*object]bool
	rescaleAt time.Time
	// endings are namespaces that are being deleted, in which objects are to be made again.
	endings map[string]*ending
	// ready: the last report said that it is applied and healthy.
	ready bool

	// What the report says.
	finding  tunnel.Finding // of Applied
	settled  bool           // the operation has ended
	op       *tunnel.Operation
	problems map[manifest.Identity]planned // of objects that are not in objects
	wants    *wants                        // what the newest render has; nil: nobody asked
	// leftBehind says what this operation kept although it should have gone, and
	// alsoLeft how many more there are.
	leftBehind []string
	alsoLeft   int
	refusal    *tunnel.Finding
	refused    int64
	done       bool
	held       *tunnel.HeldPrune // deletions that wait to be confirmed
	heldMoved  bool              // what keeps some of them has changed since

	dirty       bool
	reportedAt  time.Time
	reported    [32]byte // hash of the last report
	counter     int64
	reserved    int64 // counters below this are written down
	doneAt      int64 // counter of the report that said Done
	saveAt      time.Time
	endedNew    bool      // that an object has ended is not written down yet
	locateAt    time.Time // kinds that were not found are asked for again
	locateTries int

	inventoryNew  bool // the inventory was not acknowledged yet
	inventorySent int64
	inventoryDue  bool // it is sent whatever is under way
	// sent is the fence of the inventory that was sent last, acknowledged that of the
	// one that the hub took over last, in this run.
	sent, acknowledged string
}

// planned is the problem of an object that is only planned.
type planned struct {
	problem
	since time.Time
	// hook: it is that of a hook, which the counts of objects leave out.
	hook bool
}

func (r *release) now() time.Time { return r.runner.clock.Now() }

// wakeLocked starts the goroutine or tells it to look again.
func (r *release) wakeLocked() {
	if !r.running && r.runner.start(r) {
		r.running = true
	}
	select {
	case r.notify <- struct{}{}:
	default: // it is told already
	}
}

// work is what the goroutine does next.
type work uint8

const (
	workNone work = iota
	workOrder
	workHeal
	workReport
	workSave
	workTell
	workCalm
	workLocate
	workRescale
	workWait
)

// run does what there is to do, and returns when there is nothing.
func (r *release) run(ctx context.Context) {
	ctx = logr.NewContext(ctx, r.log)
	for {
		next, at := r.next(ctx)
		switch next {
		case workNone:
			return
		case workOrder:
			r.carryOut(ctx)
		case workHeal:
			r.active(ctx, func() { r.heal(ctx) })
		case workReport:
			r.report()
		case workSave:
			if err := r.save(ctx); err != nil && ctx.Err() == nil {
				r.log.Error(err, "state not written, will be tried again")
			}
		case workTell:
			r.tell()
		case workCalm:
			r.calm()
		case workLocate:
			r.findKinds(ctx)
		case workRescale:
			r.active(ctx, func() { r.rescale(ctx) })
		case workWait:
			r.pause(ctx, at)
		}
	}
}

// next decides; with workNone the goroutine has ended.
func (r *release) next(ctx context.Context) (work, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil || r.stopping {
		r.running = false
		return workNone, time.Time{}
	}
	now := r.now()
	if r.order.Sequence > r.handled && !r.done {
		return workOrder, now
	}
	at := time.Time{}
	earliest := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if !r.retryAt.IsZero() {
		if !r.retryAt.After(now) {
			return workOrder, now
		}
		earliest(r.retryAt)
	}
	if due := r.healDueLocked(now); !due.IsZero() {
		if !due.After(now) {
			return workHeal, now
		}
		earliest(due)
	}
	if due := r.tellDueLocked(); !due.IsZero() {
		if !due.After(now) {
			return workTell, now
		}
		earliest(due)
	}
	if due := r.calmDueLocked(); !due.IsZero() {
		if !due.After(now) {
			return workCalm, now
		}
		earliest(due)
	}
	if due := r.reportDueLocked(); !due.IsZero() {
		if !due.After(now) {
			return workReport, now
		}
		earliest(due)
	}
	if !r.saveAt.IsZero() {
		if !r.saveAt.After(now) {
			return workSave, now
		}
		earliest(r.saveAt)
	}
	if !r.locateAt.IsZero() {
		if !r.locateAt.After(now) {
			return workLocate, now
		}
		earliest(r.locateAt)
	}
	if due := r.rescaleDueLocked(); !due.IsZero() {
		if !due.After(now) {
			return workRescale, now
		}
		earliest(due)
	}
	if !at.IsZero() {
		return workWait, at
	}
	r.running = false
	return workNone, time.Time{}
}

// pause waits for word, a time or the end.
func (r *release) pause(ctx context.Context, until time.Time) {
	timer := r.runner.clock.NewTimer(max(until.Sub(r.now()), 0))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-r.notify:
	case <-timer.C():
	}
}

// active runs f as one of the few Releases that work at the same time.
func (r *release) active(ctx context.Context, f func()) {
	if !r.enter(ctx) {
		return
	}
	defer r.leave()
	f()
}

func (r *release) enter(ctx context.Context) bool {
	select {
	case r.runner.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *release) leave() { <-r.runner.slots }

// carryOut does what the newest order says, and decides when to try again.
func (r *release) carryOut(ctx context.Context) {
	r.mu.Lock()
	order := r.order
	r.retryAt, r.carrying, r.called = time.Time{}, true, false
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.carrying = false
	}()

	log := r.log.WithValues("sequence", order.Sequence, "revision", order.Revision)
	ctx = actAs(logr.NewContext(ctx, log), order.ServiceAccount)
	var err error
	r.active(ctx, func() {
		if order.Verb == tunnel.VerbApply && order.Policy.Suspended {
			err = r.holdStill(ctx, order)
			return
		}
		if err = r.awaitWaves(ctx, order); err != nil {
			return
		}
		switch order.Verb {
		case tunnel.VerbApply:
			err = r.sync(ctx, order)
		case tunnel.VerbRemove:
			err = r.removeAll(ctx, order)
		case tunnel.VerbRelease:
			err = r.releaseAll(ctx, order)
		}
	})
	if ctx.Err() != nil || errors.Is(err, errSuperseded) {
		return
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.order.Sequence != order.Sequence {
		return
	}
	r.handled = order.Sequence
	r.dirty = true
	if err == nil {
		r.retries, r.resumed = 0, false
		return
	}
	if isAborted(err) {
		return // a person has ended it, and says when it goes on
	}
	pause, again := r.againLocked(order, err)
	if !again {
		r.giveUpLocked()
		log.Info("operation failed, and is not tried again", "verb", order.Verb, "attempts", r.attempts.failed, "error", err.Error())
		return
	}
	if r.called && r.finding.Reason == v1alpha1.ReasonOwnedByOther {
		pause = 0
	}
	if isHeld(err) && r.heldMoved {
		pause = 0
	}
	r.retryAt = r.now().Add(pause)
	log.Info("operation failed, will be tried again", "verb", order.Verb, "after", pause, "reason", r.finding.Reason, "error", err.Error())
}

// superseded says whether a newer order waits.
func (r *release) superseded(order tunnel.Order) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.order.Sequence != order.Sequence
}

// checkpoint is a safe point: an operation ends here when the run ends or a newer
// order waits.
func (r *release) checkpoint(ctx context.Context, order tunnel.Order) error {
	if ctx.Err() != nil {
		return errStopped
	}
	if r.superseded(order) {
		return errSuperseded
	}
	return nil
}

// waitUntil waits until met says so, repairing and reporting meanwhile. It answers
// false when the deadline passed first. The Release gives its place away while it
// waits.
func (r *release) waitUntil(ctx context.Context, order tunnel.Order, deadline time.Time, met func() bool) (bool, error) {
	r.leave()
	defer func() { r.runner.slots <- struct{}{} }()
	for {
		if err := r.checkpoint(ctx, order); err != nil {
			return false, err
		}
		if met() {
			return true, nil
		}
		now := r.now()
		if !deadline.After(now) {
			return false, nil
		}
		at := deadline
		r.mu.Lock()
		healAt, reportAt, tellAt := r.healDueLocked(now), r.reportDueLocked(), r.tellDueLocked()
		ended := r.endedNew
		r.endedNew = false
		r.mu.Unlock()
		if ended {
			// It may be gone when the next run begins.
			if err := r.save(ctx); err != nil && ctx.Err() == nil {
				r.log.Error(err, "state not written, will be tried again")
			}
			continue
		}
		switch {
		case !healAt.IsZero() && !healAt.After(now):
			r.active(ctx, func() { r.heal(ctx) })
			continue
		case !tellAt.IsZero() && !tellAt.After(now):
			r.tell()
			continue
		case !reportAt.IsZero() && !reportAt.After(now):
			r.report()
			continue
		}
		for _, t := range []time.Time{healAt, reportAt, tellAt} {
			if !t.IsZero() && t.Before(at) {
				at = t
			}
		}
		r.pause(ctx, at)
	}
}

// backoff grows with the number of attempts, from low to high.
func backoff(attempts int, low, high time.Duration) time.Duration {
	d := low
	for range attempts {
		if d >= high/2 {
			return high
		}
		d *= 2
	}
	return d
}
