// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"

	"kumodo.io/convoy/pkg/tunnel"
)

// Somebody may delete an object of a Release and make another under its name, which
// carries nobody's mark. That one is not what we applied: it is taken over as an install
// takes over what is there, with the conflicts that the policy does not let us win, and
// never deleted for it, whatever becomes of the Release. Its UID is written down before it
// gets our mark.

// madeByOthers is why such an object is never deleted.
const madeByOthers = "it was made by somebody else, after the one of this Release was deleted"

// errReplaced: what is there is not what we applied, and cannot be taken over now.
var errReplaced = errors.New("somebody has deleted it and made another of its name")

// replaced says whether an object, by its UID and owner, stands in the place of the one
// that we applied, and is nobody's.
func (r *release) replaced(o *object, uid, owner string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return owner == "" && o.uid != "" && o.uid != uid
}

// isAdopted says whether an object, by its UID, was made by somebody else, and only taken
// over.
func (o *object) isAdopted(uid string) bool { return o.adopted != "" && o.adopted == uid }

// adopts writes down that an object made by somebody else becomes ours, before it does.
func (r *release) adopts(ctx context.Context, o *object, uid string) error {
	r.mu.Lock()
	known := o.isAdopted(uid)
	o.adopted, o.created = uid, false
	r.mu.Unlock()
	if known {
		return nil
	}
	r.log.Info("object of somebody else taken over", "object", o.id.String(), "uid", uid)
	return r.save(ctx)
}

// adoptItem does so for an item that is about to be applied onto such an object, or onto
// one that another Release has taken over so.
func (r *release) adoptItem(ctx context.Context, it *item, o *object) error {
	if !it.found {
		return nil
	}
	if it.from != nil {
		it.from.mu.Lock()
		old := it.from.objects[it.id]
		passes := old != nil && old.isAdopted(it.uid)
		it.from.mu.Unlock()
		if passes {
			return r.adopts(ctx, o, it.uid)
		}
	}
	if it.marked || !r.replaced(o, it.uid, "") {
		return nil
	}
	it.claim.takeOver = false // what they have set beside the render stays
	return r.adopts(ctx, o, it.uid)
}

// takeReplaced takes over what stands in the place of an object of ours.
func (r *release) takeReplaced(ctx context.Context, o *object, content, live map[string]any, how repairing) (repaired, error) {
	r.observe(o, live)
	if how != repairAll {
		return repaired{}, nil
	}
	if metaText(live, "deletionTimestamp") != "" {
		return repaired{}, fmt.Errorf("%w, which is being deleted", errReplaced)
	}
	r.mu.Lock()
	res, order := o.res, r.order
	r.mu.Unlock()
	pre := precondition{uid: metaText(live, "uid"), resourceVersion: metaText(live, "resourceVersion")}
	content, t, err := r.shapeLive(ctx, o, content, live)
	if err != nil {
		return repaired{}, &compareError{err}
	}
	body, err := r.marks.body(content, o.id, pre)
	if err != nil {
		return repaired{}, err
	}
	want, _, err := r.runner.target.apply(ctx, *res, o.id.Namespace, o.id.Name, body, false, true)
	if conflicts := conflictsOf(err); len(conflicts) > 0 {
		if err := winReplaced(order, conflicts); err != nil {
			return repaired{}, err
		}
		want, _, err = r.runner.target.apply(ctx, *res, o.id.Namespace, o.id.Name, body, true, true)
	}
	if err != nil {
		return repaired{}, err
	}
	differ := changes(live, want, t)
	if err := r.adopts(ctx, o, pre.uid); err != nil {
		return repaired{}, err
	}
	answer, _, err := r.runner.target.apply(ctx, *res, o.id.Namespace, o.id.Name, body, true, false)
	if err != nil {
		return repaired{}, err
	}
	r.runner.track(res, r, o, true)
	r.accept(o, answer)
	out := describe(differ, false)
	out.what = "was deleted and made anew by somebody else, taken over"
	return out, nil
}

// winReplaced says whether conflicts with those who made an object are ours to win, as
// those with kubectl are. That we applied its fields before was to another object.
func winReplaced(order tunnel.Order, conflicts []conflict) error {
	if order.Policy.ForceConflicts {
		return nil
	}
	err := unforced(conflicts, nil, clientSideManagers.Has)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errReplaced, err)
}
