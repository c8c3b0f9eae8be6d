// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// contest counts the repairs of one object. Others may change it again and again;
// then the repairs get slower, and the report names who it is, until the object was left
// alone for a while.
type contest struct {
	tokens   int
	refilled time.Time
	last     time.Time
	next     time.Time // not before
	slow     int       // repairs since it was first slowed down
	raced    int       // repairs in a row that failed because the object kept changing
	// until then there is a fight, if nothing more happens; zero: there is none.
	until time.Time
}

func newContest(now time.Time) *contest {
	return &contest{tokens: healBurst, refilled: now, last: now}
}

// allow takes one repair, or says when the next may be made.
func (c *contest) allow(now time.Time) {
	if now.Sub(c.last) > contestForget {
		*c = *newContest(now)
	}
	if n := int(now.Sub(c.refilled) / healRefill); n > 0 {
		c.tokens = min(healBurst, c.tokens+n)
		c.refilled = c.refilled.Add(time.Duration(n) * healRefill)
	}
	c.last = now
	if c.tokens > 0 {
		c.tokens--
		if !c.fought(now) {
			c.next, c.until = time.Time{}, time.Time{}
			if c.tokens > healBurst/2 {
				c.slow = 0
			}
			return
		}
	}
	pause := backoff(c.slow, contestMin, contestMax)
	c.slow++
	c.next = now.Add(pause)
	c.until = c.next.Add(max(pause, contestCalm))
}

// fought says whether there is a fight about the object.
func (c *contest) fought(now time.Time) bool { return c != nil && now.Before(c.until) }

// contestedProblem names who changes an object again and again, if that is known.
func contestedProblem(manager string, own bool) *problem {
	who := "somebody"
	switch {
	case manager != "":
		who = fmt.Sprintf("%q", manager)
	case own:
		who = fmt.Sprintf("%q, our own name: by another agent that has an order for the same Release, or a webhook that changes each apply", v1alpha1.FieldManager)
	}
	return &problem{reason: exceptionContested, message: clip("changed again and again by "+who+": repaired, with growing pauses", maxMessage)}
}

// calmDueLocked says when the next fight is over, if nothing more happens; zero: there
// is none.
func (r *release) calmDueLocked() time.Time {
	var first time.Time
	for o := range r.fights {
		if first.IsZero() || o.contest.until.Before(first) {
			first = o.contest.until
		}
	}
	return first
}

// calm ends the fights that are over.
func (r *release) calm() {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for o := range r.fights {
		if r.objects[o.id] != o {
			delete(r.fights, o)
			continue
		}
		if o.contest.fought(now) {
			continue
		}
		delete(r.fights, o)
		before := o.view()
		if o.problem != nil && o.problem.reason == exceptionContested {
			o.problem = nil
		}
		r.reviewLocked(o, before, now)
	}
}
