// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
)

// sight is what watches have seen of the object of a hook. Such an object is seen by
// the same watches as all others, and never repaired. Guarded by the release's mu.
type sight struct {
	run string // of the run that makes it
	uid string // empty until it is known
	// earlier is the UID of an object of that name that has to go before.
	earlier     string
	earlierGone bool
	// outcome is the first final state that was seen; it stays, also when the object
	// goes afterwards.
	outcome outcome
	why     string
	gone    bool
	// badSince is since when it is Degraded, which may be a moment's; zero: it is not.
	// Its kind may need more time to get better, until grace.
	badSince, grace time.Time
}

// outcome of a hook's object.
type outcome uint8

const (
	outcomeOpen outcome = iota
	outcomeDone
	outcomeFailed
	outcomeDoubtful // it looks as if it had failed, and has when it goes on to look so
)

// sighted begins to watch the object of a hook, unsighted ends it.
func (r *release) sighted(h *hook, s *sight) *object {
	o := &object{id: h.id, version: h.version, res: h.res, applied: true, sight: s}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runner.track(o.res, r, o, true)
	return o
}

func (r *release) unsighted(o *object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runner.untrack(o.res, r, o.id)
}

// observeHook takes in the live state of a hook's object.
func (r *release) observeHook(o *object, live map[string]any) {
	uid := metaText(live, "uid")
	state, why, grace := r.outcomeOf(o.id, live)
	r.mu.Lock()
	defer r.mu.Unlock()
	s := o.sight
	if s.uid == "" && s.run != "" && ownerOf(live) == r.marks.owner && annotationTexts(live)[v1alpha1.AnnotationHookRun] == s.run {
		s.uid = uid
	}
	if s.earlier != "" && s.earlier != uid {
		s.earlierGone = true
	}
	switch {
	case s.uid == "":
	case s.uid != uid:
		s.gone = true // another took its name
	case s.outcome == outcomeOpen:
		s.take(state, why, grace, r.now())
		o.rv = parseVersion(metaText(live, "resourceVersion"))
	}
	r.wakeLocked()
}

// take notes what its object says now, as long as nothing final was seen.
func (s *sight) take(state outcome, why string, grace, now time.Time) {
	switch {
	case s.outcome != outcomeOpen:
		return
	case state != outcomeDoubtful:
		s.outcome, s.badSince = state, time.Time{}
	case s.badSince.IsZero():
		s.badSince = now
	}
	s.why, s.grace = why, grace
}

// vanishedHook takes in that a hook's object is gone; an empty uid: a list of the version
// rv had none, which says nothing of what was made after it.
func (r *release) vanishedHook(o *object, uid string, rv uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if uid == "" && rv != 0 && rv < o.rv {
		return
	}
	s := o.sight
	if s.earlier != "" && (uid == "" || uid == s.earlier) {
		s.earlierGone = true
	}
	if s.uid != "" && (uid == "" || uid == s.uid) {
		s.gone = true
	}
	r.wakeLocked()
}

// outcomeOf says whether the object of a hook has done what it is there for: a Job or a
// Pod when it has ended, any other when it is healthy. One that looks as if it had failed
// may get better until the time given at least.
func (r *release) outcomeOf(id manifest.Identity, live map[string]any) (outcome, string, time.Time) {
	var none time.Time
	switch {
	case id.Group == "batch" && id.Kind == "Job":
		state, why := jobOutcome(live)
		return state, why, none
	case id.Group == "" && id.Kind == "Pod":
		state, why := podOutcome(live)
		return state, why, none
	}
	if metaText(live, "deletionTimestamp") != "" {
		return outcomeOpen, "is being deleted" + finalizersOf(live), none
	}
	v := r.judge(live)
	why := clip(v.Message, maxMessage)
	switch v.State {
	case healthy:
		return outcomeDone, "", none
	case degraded:
		if v.Final {
			return outcomeFailed, why, none
		}
		return outcomeDoubtful, why, v.Grace
	case healthUnknown, progressing, suspended, terminating:
	}
	return outcomeOpen, because("is "+v.State.String(), why), none
}

// verdictLocked is what a sight says by now, and when it may say more by itself; zero:
// it does not.
func (s *sight) verdictLocked(now time.Time) (outcome, time.Time) {
	if s.outcome != outcomeOpen || s.badSince.IsZero() {
		return s.outcome, time.Time{}
	}
	due := doubtedUntil(s.badSince, s.grace)
	if now.Before(due) {
		return outcomeOpen, due
	}
	return outcomeFailed, time.Time{}
}

func jobOutcome(live map[string]any) (outcome, string) {
	conditions, _, err := unstructured.NestedSlice(live, "status", "conditions")
	if err != nil {
		return outcomeOpen, "its conditions cannot be read"
	}
	for _, item := range conditions {
		c, ok := item.(map[string]any)
		if !ok || text(c["status"]) != "True" {
			continue
		}
		switch text(c["type"]) {
		case "Complete":
			return outcomeDone, ""
		case "Failed":
			return outcomeFailed, because(text(c["reason"]), text(c["message"]))
		}
	}
	active, _, err := unstructured.NestedInt64(live, "status", "active")
	if err != nil {
		active = 0 // odd, and only told
	}
	return outcomeOpen, fmt.Sprintf("has not ended, %d pods active", active)
}

func podOutcome(live map[string]any) (outcome, string) {
	status, ok := live["status"].(map[string]any)
	if !ok {
		return outcomeOpen, "has not begun"
	}
	switch phase := text(status["phase"]); phase {
	case "Succeeded":
		return outcomeDone, ""
	case "Failed":
		return outcomeFailed, because(text(status["reason"]), text(status["message"]))
	default:
		return outcomeOpen, "has not ended, its phase is " + clip(phase, 64)
	}
}

// because joins a reason and a message, of which either may be missing.
func because(reason, message string) string {
	switch {
	case reason == "" && message == "":
		return "it gave no reason"
	case message == "":
		return clip(reason, maxMessage)
	case reason == "":
		return clip(message, maxMessage)
	}
	return clip(reason+": "+message, maxMessage)
}
