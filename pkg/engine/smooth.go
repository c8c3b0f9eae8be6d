// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"time"

	judged "kumodo.io/convoy/pkg/health"
)

// smooth is kept of an object whose health is not told just as it is judged: of one that
// is Degraded since a moment, and of one that keeps falling out of health. It is nil for
// all others. A change to worse is never hidden: it is told at once, as Progressing.
type smooth struct {
	raw   judged.Verdict // as it was judged last
	since time.Time      // the state of raw
	// falls out of health, the newest first, while the object was of one generation.
	falls      [maxFalls]time.Time
	generation int64
}

// fall notes that an object stopped being healthy. One whose specification was changed
// since the last fall begins anew: that it is worked on is no fault.
func (s *smooth) fall(generation int64, now time.Time) {
	if s.generation != generation {
		s.falls = [maxFalls]time.Time{}
	}
	s.generation = generation
	copy(s.falls[1:], s.falls[:maxFalls-1])
	s.falls[0] = now
}

func (s *smooth) falling(now time.Time) bool {
	first := s.falls[maxFalls-1]
	return !first.IsZero() && now.Sub(first) < fallWindow
}

// shown gives what is told of an object of which told was told last, and when that changes
// by itself; zero: it does not.
func (s *smooth) shown(told health, now time.Time) (health, string, time.Time) {
	switch {
	case s.raw.State == degraded && !s.raw.Final && told != degraded:
		due := doubtedUntil(s.since, s.raw.Grace)
		if now.Before(due) {
			return progressing, s.raw.Message, due
		}
	case s.raw.State == healthy && s.falling(now):
		if due := s.since.Add(healthyAfter); now.Before(due) {
			why := fmt.Sprintf("is healthy again, but was not %d times within %s: counts when it stays so for %s", maxFalls, fallWindow, healthyAfter)
			return progressing, why, due
		}
	}
	return s.raw.State, s.raw.Message, time.Time{}
}

// doubtedUntil is when what is Degraded since a time, and not for good, counts as that.
func doubtedUntil(since, grace time.Time) time.Time {
	due := since.Add(degradedAfter)
	if grace.After(due) {
		due = grace
	}
	// Whatever its clock says, it has no more time than that.
	if most := since.Add(graceMost); due.After(most) {
		due = most
	}
	return due
}

// tellLocked takes in how an object of a generation is judged now.
func (r *release) tellLocked(o *object, v judged.Verdict, generation int64, now time.Time) {
	before := o.health
	if o.smooth != nil {
		before = o.smooth.raw.State
	}
	fell := before == healthy && worse(v.State)
	if o.smooth == nil {
		if !fell && (v.State != degraded || v.Final || o.health == degraded) {
			o.health, o.why = v.State, v.Message
			return
		}
		o.smooth = &smooth{since: now}
	}
	if fell {
		o.smooth.fall(generation, now)
	}
	if v.State != before {
		o.smooth.since = now
	}
	o.smooth.raw = v
	r.showLocked(o, now)
}

// appliedLocked takes in how an object is judged that was applied just now. That it is
// worked on then is no fall.
func (r *release) appliedLocked(o *object, v judged.Verdict, generation int64, now time.Time) {
	if o.smooth == nil && o.health == healthy && worse(v.State) {
		o.health = progressing
	}
	r.tellLocked(o, v, generation, now)
}

// worse says whether a state is one that an object falls into out of health.
func worse(state health) bool {
	return state == progressing || state == degraded || state == healthUnknown
}

// showLocked sets what is told of an object that has a smooth.
func (r *release) showLocked(o *object, now time.Time) {
	state, why, due := o.smooth.shown(o.health, now)
	o.health, o.why = state, why
	if !due.IsZero() {
		r.waits[o] = due
		r.wakeLocked()
		return
	}
	delete(r.waits, o)
	if newest := o.smooth.falls[0]; newest.IsZero() || now.Sub(newest) >= fallWindow {
		o.smooth = nil
	}
}

// roughenLocked forgets what is kept of an object that is gone.
func (r *release) roughenLocked(o *object) {
	o.smooth = nil
	delete(r.waits, o)
}

// tellDueLocked says when what is told of an object's health changes by itself; zero: of
// none.
func (r *release) tellDueLocked() time.Time {
	var first time.Time
	for _, due := range r.waits {
		if first.IsZero() || due.Before(first) {
			first = due
		}
	}
	return first
}

// tell changes what is told of the health of objects whose time has come.
func (r *release) tell() {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for o, due := range r.waits {
		switch {
		case r.objects[o.id] != o || o.smooth == nil:
			delete(r.waits, o)
		case !due.After(now):
			before := o.view()
			r.showLocked(o, now)
			r.reviewLocked(o, before, now)
		}
	}
}

// keepStateLocked sees to it that a changed health is written down, so that a restart
// knows since when it is so. While an operation runs, its end does.
func (r *release) keepStateLocked(o *object, now time.Time) {
	if o.health != healthy && o.applied && r.settled && r.saveAt.IsZero() {
		r.saveAt = now.Add(stateAfter)
	}
}

// saveStateLocked writes into a record what an object's health is, if it has to be known
// after a restart.
func (r *release) saveStateLocked(o *object, e *Entry) {
	if o.health != healthy && o.seen && !o.missing && !o.orphaned {
		e.State, e.Since = o.health.String(), r.runner.moments.told(o.since)
	}
}

// restoreState takes it back. Until the object is seen it counts as unseen all the same.
func (o *object) restoreState(e Entry) {
	if state, ok := judged.ParseState(e.State); ok && !e.Since.IsZero() {
		o.health, o.since = state, e.Since
	}
}

func generationOf(live map[string]any) int64 {
	meta, ok := live["metadata"].(map[string]any)
	if !ok {
		return 0
	}
	generation, ok := meta["generation"].(int64)
	if !ok {
		return 0
	}
	return generation
}
