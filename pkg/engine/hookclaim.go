// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// errForeignHook: what has the name of a hook's object is not ours to replace.
var errForeignHook = errors.New("an object of this name is there that no hook of this Release made; delete it, or give the hook another name")

// made says that the object of a run came to be by a hook of this Release: only such a
// one is ever deleted for it. Jobs and Pods are never applied onto one that is there,
// so those of every run were made.
func (run *HookRun) made() bool {
	return run.UID != "" && run.UID != run.Onto && (run.Created || isRun(run.Identity))
}

// mayGo says whether the object of a run may be deleted, by a policy, at a deadline or
// with the Release. One whose UID is not written down yet is told by the run's name on
// it and by Onto.
func (run *HookRun) mayGo() bool { return !run.Keep && !run.Gone && (run.UID == "" || run.made()) }

// standsBefore says whether an object, by its UID, was there before the run, so that it
// is not to be deleted although it may carry the run's name.
func (run *HookRun) standsBefore(uid string) bool {
	return uid == run.Onto || run.UID != "" && !run.made()
}

// madeByHook says whether a hook of this Release made an object, by its UID.
func (r *release) madeByHook(id manifest.Identity, uid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range r.runs {
		if run.Identity == id && run.UID == uid && run.made() {
			return true
		}
	}
	return false
}

// claim says whether an object that has the name of a hook's may be changed for it, and
// whether it may be deleted for it too, which needs proof that this Release made it: by
// a hook, by one of a Release of the name that is gone, or as an object of its own
// before that became a hook. Of one that is nobody's the hook's own word that it is
// kept, or the policy to take fields from others, permits that it is changed where it
// is.
func (r *release) claim(order tunnel.Order, h *hook, uid string, annotations map[string]string) (ours bool, err error) {
	owner, byHook := annotations[v1alpha1.AnnotationOwner], annotations[v1alpha1.AnnotationHookRun] != ""
	switch {
	case owner == "":
		if isRun(h.id) || !h.keep && !order.Policy.ForceConflicts && !r.stoodBefore(h.id, uid) && !r.madeByHook(h.id, uid) {
			return false, errForeignHook
		}
		return false, nil
	case owner != r.marks.owner:
		from, ok := r.passes(owner, h.id, uid)
		if !ok || !byHook {
			return false, r.runner.ownedByOther(owner)
		}
		return isRun(h.id) || from != nil && from.madeByHook(h.id, uid), nil
	case r.madeByHook(h.id, uid), r.former(h.id, uid):
		return true, nil
	case byHook:
		// Our marks are on it. That we made it is known of a Job or a Pod, which no hook
		// is ever applied onto; anything else may have been there before.
		return isRun(h.id), nil
	case isRun(h.id) || !r.stoodBefore(h.id, uid):
		return false, errForeignHook
	}
	return false, nil
}

// former says whether an object was made by this Release, before it became a hook.
func (r *release) former(id manifest.Identity, uid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.objects[id]; o != nil && o.uid == uid && o.created {
		return true
	}
	if f := r.formerLocked(id); f != nil && f.UID == uid && f.Created {
		return true
	}
	for _, run := range r.runs {
		if run.Identity == id && uid != "" && run.Former == uid {
			return true
		}
	}
	return false
}

// formerLocked is what is known of an object that was let go for a hook; nil: nothing.
func (r *release) formerLocked(id manifest.Identity) *Former {
	for i := range r.formers {
		if r.formers[i].Identity == id && r.formers[i].UID != "" {
			return &r.formers[i]
		}
	}
	return nil
}

// stoodBefore says whether this Release has applied an object that it did not make.
func (r *release) stoodBefore(id manifest.Identity, uid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.objects[id]; o != nil && o.uid == uid {
		return true
	}
	if f := r.formerLocked(id); f != nil && f.UID == uid {
		return true
	}
	for _, run := range r.runs {
		if run.Identity == id && uid != "" && run.Onto == uid {
			return true
		}
	}
	return false
}
