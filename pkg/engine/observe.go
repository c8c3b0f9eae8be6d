// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"time"
)

// observe takes in the live state of an object that is ours, from a watch, a list
// or an answer. What is older than what was seen is left out.
func (r *release) observe(o *object, live map[string]any) {
	if o.sight != nil {
		r.observeHook(o, live)
		return
	}
	verdict := r.judge(live)
	annotations := annotationTexts(live)
	end, deleting := endOf(o.id, live, annotations, verdict), metaText(live, "deletionTimestamp") != ""
	stays := deleteRules{}.annotated(annotations) != ""
	t := r.sparedOf(o, live)
	p, entry := project(live, t)
	uid, rv := metaText(live, "uid"), parseVersion(metaText(live, "resourceVersion"))
	owner := ownerOf(live)
	now := r.now()

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.objects[o.id] != o {
		return
	}
	if o.seen && !o.missing && o.is(uid) && rv != 0 && rv < o.rv {
		return
	}
	if o.missing && rv != 0 && rv <= o.rv {
		return // an older life of it
	}
	before := o.view()
	o.notice(uid)
	r.endLocked(o, uid, end, deleting)
	if deleting && o.other == "" && o.over() {
		verdict = o.ended.verdict(false)
	}
	o.rv, o.seen, o.missing = rv, true, false
	o.live, o.entryGone, o.unsure = p, !entry, t.unsure
	o.held = finalized(live)
	r.tellLocked(o, verdict, generationOf(live), now)
	r.staysLocked(o, stays)
	if owner == r.marks.owner {
		owner = ""
	}
	if o.foreign != owner {
		o.foreign = owner
		r.saveSoonLocked() // it may be gone when the next run begins
	}
	r.keepLocked(o, live)
	r.reviewLocked(o, before, now)
}

// vanished takes in that an object is gone: uid names the one that is, rv when.
func (r *release) vanished(o *object, uid string, rv uint64) {
	if o.sight != nil {
		r.vanishedHook(o, uid, rv)
		return
	}
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.objects[o.id] != o || o.missing || (uid != "" && o.seen && !o.is(uid)) || (rv != 0 && rv < o.rv) {
		return
	}
	before := o.view()
	o.seen, o.missing, o.entryGone = true, true, false
	r.goneLocked(o)
	if rv != 0 {
		o.rv = rv
	}
	delete(r.kept, o)
	r.reviewLocked(o, before, now)
	r.liftedLocked(o)
}

// accept takes in the answer to our own apply: from now on this is how it must be.
func (r *release) accept(o *object, live map[string]any) {
	verdict := r.judge(live)
	t := r.sparedOf(o, live)
	p, entry := project(live, t)
	uid, rv := metaText(live, "uid"), parseVersion(metaText(live, "resourceVersion"))
	now := r.now()

	r.mu.Lock()
	defer r.mu.Unlock()
	before := o.view()
	o.want, o.applied = p, true
	if o.problem == nil || o.problem.reason != exceptionContested || !o.contest.fought(now) {
		o.problem = nil
	}
	newer := !o.seen || !o.is(uid) || rv == 0 || rv >= o.rv
	if o.uid != uid {
		if o.uid != "" {
			r.inventoryNew, r.inventorySent = true, 0 // what was told names an object that is gone
		}
		o.uid = uid
		if !o.isAdopted(uid) {
			o.adopted = ""
		}
	}
	if newer {
		o.other, o.rv, o.seen, o.missing = "", rv, true, false
		o.live, o.entryGone, o.foreign, o.unsure = p, !entry, "", t.unsure
		o.held = finalized(live)
		r.appliedLocked(o, verdict, generationOf(live), now)
	}
	r.reviewLocked(o, before, now)
}

// view is the part of an object's state that a report may show.
type view struct {
	health  health
	why     string
	drifted bool
	applied bool
	foreign string
	unsure  string
	unseen  string
	differs string
	kept    string
	problem problem
}

func (o *object) view() view {
	v := view{health: o.health, why: o.why, drifted: o.drifted(), applied: o.applied, foreign: o.foreign, unsure: o.unsure, unseen: o.unseen, differs: o.differs}
	if o.problem != nil {
		v.problem = *o.problem
	}
	if o.unscaled != nil && o.scaling == scaledBefore {
		v.kept = o.unscaled.why
	}
	return v
}

// reviewLocked looks at what changed of an object: it may have to be repaired, and
// the report may have to say so.
func (r *release) reviewLocked(o *object, before view, now time.Time) {
	if o.drifted() && !o.orphaned {
		if _, known := r.drifts[o]; !known {
			r.drifts[o] = now
			r.wakeLocked()
		}
	} else {
		delete(r.drifts, o)
		delete(r.kept, o)
		o.judged, o.differs = false, ""
	}
	if after := o.view(); after != before {
		if exceptional(after) != exceptional(before) || after.health != before.health {
			o.since = now
			r.keepStateLocked(o, now)
		}
		r.dirty = true
		r.wakeLocked()
	}
}

func exceptional(v view) bool {
	return v.health != healthy || v.drifted || v.foreign != "" || v.unsure != "" || v.unseen != "" || v.kept != "" || v.problem != (problem{})
}

// keepLocked holds the content of an object that has drifted until it is repaired,
// so that it need not be read again. Only a few are held.
func (r *release) keepLocked(o *object, live map[string]any) {
	if !o.drifted() {
		delete(r.kept, o)
		return
	}
	if _, there := r.kept[o]; there || len(r.kept) < maxKept {
		r.kept[o] = maps.Clone(live)
	}
}
