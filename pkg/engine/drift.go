// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// differs and unsure of a tally: how many objects are not as they were applied, of how
// many that could not be found out, and about how many there is a fight.
type syncTally struct {
	drifted, unsure, contested, stuck         int
	firstDrifted, firstUnsure, firstContested string
	unsureSince                               time.Time
}

// first keeps the text that sorts first, so that a report says the same again while
// nothing has changed.
func first(have *string, text string) {
	if *have == "" || text < *have {
		*have = text
	}
}

// addLocked counts one object that was seen, and says what of it is an exception. It is
// true of one that failed.
func (s *syncTally) addLocked(r *release, o *object, add func(o *object, reason, message string)) (failed bool) {
	name := o.id.String()
	switch {
	case o.unseen != "":
		s.addUnsure(o, name+": "+o.unseen)
		add(o, exceptionUnreachable, o.unseen)
		if o.drifted() {
			s.stuck++
		}
		return false
	case o.foreign != "":
		message := fmt.Sprintf("belongs to %q", clip(o.foreign, 100))
		if o.missing {
			message = fmt.Sprintf("was taken over by %q, and is gone: a sync makes it again", clip(o.foreign, 100))
		}
		s.drifted++
		first(&s.firstDrifted, name+" "+message)
		add(o, exceptionOwned, message)
		return true
	case o.problem != nil:
		s.addProblem(o, name)
		add(o, o.problem.reason, o.problem.message)
		return true
	case o.drifted():
		message := "is not as it was applied"
		if o.missing {
			message = "was deleted"
		}
		if o.judged && o.judgedAt == o.rv {
			message = o.differs
		}
		s.drifted++
		first(&s.firstDrifted, name+" "+message)
		if _, any := r.dueLocked(o, time.Time{}); !any {
			s.stuck++ // it is told, and stays so
		}
		add(o, exceptionDrifted, message)
	case o.scaling == scaledBefore && o.unscaled != nil:
		s.drifted++
		first(&s.firstDrifted, name+": "+o.unscaled.why)
		add(o, exceptionDrifted, o.unscaled.why)
	case o.unsure != "":
		s.addUnsure(o, name+": "+o.unsure)
		add(o, exceptionUnknown, o.unsure)
	}
	return false
}

func (s *syncTally) addProblem(o *object, name string) {
	contested := o.problem.reason == exceptionContested
	if contested {
		s.contested++
		first(&s.firstContested, name+" "+o.problem.message)
	}
	switch {
	case !o.drifted():
	case o.problem.unsure:
		s.stuck++
		s.addUnsure(o, name+": "+o.problem.message)
	default:
		s.stuck++
		s.drifted++
		first(&s.firstDrifted, name+": "+o.problem.message)
	}
}

func (s *syncTally) addUnsure(o *object, text string) {
	s.unsure++
	first(&s.firstUnsure, text)
	if s.unsureSince.IsZero() || o.since.Before(s.unsureSince) {
		s.unsureSince = o.since
	}
}

// findingLocked is InSync, as far as objects say it: not True. While there is a fight
// about an object it is not in sync either, also in the moments after a repair.
func (s *syncTally) findingLocked(r *release) (tunnel.Finding, bool) {
	switch {
	case s.contested > 0:
		return tunnel.Finding{
			Status: tunnel.False, Reason: v1alpha1.ReasonContested,
			Message: clip(counted(s.firstContested, max(s.contested, s.drifted)), maxMessage),
		}, true
	case s.drifted > 0:
		return tunnel.Finding{
			Status: tunnel.False, Reason: v1alpha1.ReasonDrifted,
			Message: clip(counted(s.firstDrifted, s.drifted), maxMessage),
		}, true
	case s.unsure > 0:
		since := r.runner.moments.told(s.unsureSince).UTC().Format(time.RFC3339)
		return tunnel.Finding{
			Status: tunnel.Unknown, Reason: v1alpha1.ReasonUnknown,
			Message: clip(fmt.Sprintf("since %s: %s", since, counted(s.firstUnsure, s.unsure)), maxMessage),
		}, true
	}
	return tunnel.Finding{}, false
}
