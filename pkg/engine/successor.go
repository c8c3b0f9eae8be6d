// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"strings"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// A Release that was deleted and made anew under its name while the cluster was away
// arrives here as two: one to remove, and one to apply with another UID. The new one
// takes the objects over, so that the workloads live on; what it does not take is
// removed afterwards. So it is with one that the hub has forgotten, as a head has
// proven: its Cluster was deleted, or the hub was restored from an older copy. What
// the new one does not take of that stays, since nobody ordered it away.

// successorPoll is how often a removal looks whether its successor is done.
const successorPoll = 200 * time.Millisecond

// last says whether an order ends a Release.
func last(order tunnel.Order) bool {
	return order.Verb == tunnel.VerbRemove || order.Verb == tunnel.VerbRelease
}

// passes says whether an object with that owner passes to r, and from which Release:
// one of the same name that is on its way out, or unknown to the hub. It also passes
// when the mark is all that is left of its owner: the hub is ours, but neither has
// it, as a head has proven (see mayClaim), nor do we; from is nil then. And it passes
// to another Release of the same namespace when its own lists it as orphaned.
//
// A mark of another hub counts as ours when it was made here: the inventory of the
// Release that it names has the object by its UID. So it is when the hub has lost its
// keys, and with them its id, and the agent has joined it again.
func (r *release) passes(owner string, id manifest.Identity, object string) (from *release, ok bool) {
	hub, uid, _ := strings.Cut(owner, "/")
	r.runner.mu.Lock()
	old, head := r.runner.releases[uid], r.runner.head
	r.runner.mu.Unlock()
	renamed := hub != r.runner.hub
	if renamed && (old == nil || !old.knows(id, object)) {
		return nil, false
	}
	_, ordered := head[uid]
	if old == nil {
		return nil, !ordered && r.mayClaim()
	}
	if old == r {
		return nil, renamed
	}
	old.mu.Lock()
	ref, leaving := old.ref, last(old.order)
	old.mu.Unlock()
	left := old.orphan(id, object)
	r.mu.Lock()
	defer r.mu.Unlock()
	if left && ref.Namespace == r.ref.Namespace {
		return old, true
	}
	forgotten := head != nil && !ordered
	if !leaving && !forgotten || ref.Namespace != r.ref.Namespace || ref.Name != r.ref.Name {
		return nil, false
	}
	return old, true
}

// mayClaim says whether the head proves that a mark of our hub has no owner any more
// when its Release is neither in the head nor held here. It does not when another
// Cluster of the hub stands for the same target: the Release may be alive there. Such
// a Cluster may have joined since the head was made, so that one that is over, or
// older than the order that wants the object, proves nothing of the kind either.
func (r *release) mayClaim() bool {
	r.mu.Lock()
	sequence := r.order.Sequence
	r.mu.Unlock()
	rn := r.runner
	rn.mu.Lock()
	head, ends, shared := rn.head, rn.headEnds, rn.shared
	rn.mu.Unlock()
	return head != nil && !shared && head[r.uid] >= sequence && (ends.IsZero() || rn.hubTime().Before(ends))
}

// refusedByMark lists the Releases that were refused objects of others, and may not
// claim any so far.
func (rn *Runner) refusedByMark() []*release {
	var out []*release
	for _, r := range rn.all() {
		r.mu.Lock()
		refused := r.finding.Reason == v1alpha1.ReasonOwnedByOther
		r.mu.Unlock()
		if refused && !r.mayClaim() {
			out = append(out, r)
		}
	}
	return out
}

// againNow brings the next attempt forward of a Release that was refused objects of
// others, or is about to be.
func (r *release) againNow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.called = r.called || r.carrying
	if r.finding.Reason == v1alpha1.ReasonOwnedByOther && !r.retryAt.IsZero() {
		r.retryAt = r.now()
		r.wakeLocked()
	}
}

// knows says whether a Release has applied an object, by its UID.
func (r *release) knows(id manifest.Identity, uid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.objects[id]
	return o != nil && uid != "" && o.uid == uid
}

// ownedByOther names the owner as well as we can.
func (rn *Runner) ownedByOther(owner string) error {
	err := &ownedByOtherError{owner: owner}
	if uid, ours := strings.CutPrefix(owner, rn.hub+"/"); ours {
		rn.mu.Lock()
		other := rn.releases[uid]
		_, ordered := rn.head[uid]
		err.elsewhere = other == nil && !ordered && rn.shared
		rn.mu.Unlock()
		if other != nil {
			other.mu.Lock()
			err.name = other.ref.Namespace + "/" + other.ref.Name
			other.mu.Unlock()
		}
	}
	return err
}

// outlived says whether a Release of the same name with a newer order has applied
// what it was ordered: then r is not its last word any more.
func (r *release) outlived() bool {
	r.mu.Lock()
	ref, sequence := r.ref, r.order.Sequence
	r.mu.Unlock()
	for _, other := range r.runner.all() {
		if other == r {
			continue
		}
		other.mu.Lock()
		newer := other.ref.Namespace == ref.Namespace && other.ref.Name == ref.Name &&
			other.order.Verb == tunnel.VerbApply && other.order.Sequence > sequence && other.applied != nil
		other.mu.Unlock()
		if newer {
			return true
		}
	}
	return false
}

// relinquish takes an object out of the inventory, because another Release has it now.
func (r *release) relinquish(id manifest.Identity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.objects[id]; o != nil {
		r.dropLocked(o)
		r.saveAt = r.now().Add(saveAfter)
		r.wakeLocked()
	}
}

// successorBusy says whether a Release of the same name has yet to carry out its order.
func (r *release) successorBusy() bool {
	r.mu.Lock()
	ref := r.ref
	r.mu.Unlock()
	for _, other := range r.runner.all() {
		if other == r {
			continue
		}
		other.mu.Lock()
		busy := other.ref.Namespace == ref.Namespace && other.ref.Name == ref.Name &&
			other.order.Verb == tunnel.VerbApply && (other.applied == nil || other.applied.Sequence < other.order.Sequence)
		other.mu.Unlock()
		if busy {
			return true
		}
	}
	return false
}

// yieldToSuccessor waits, for a moment until one may have come, and then until it has
// taken what it wants.
func (r *release) yieldToSuccessor(ctx context.Context, order tunnel.Order) error {
	never := func() bool { return false }
	if _, err := r.waitUntil(ctx, order, r.now().Add(removeGrace), never); err != nil {
		return err
	}
	deadline := r.now().Add(timeoutOf(order))
	for r.successorBusy() && r.now().Before(deadline) {
		if _, err := r.waitUntil(ctx, order, r.now().Add(successorPoll), never); err != nil {
			return err
		}
	}
	return nil
}
