// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"strings"
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

// A Release that was deleted and made anew under its name while the cluster was away
// arrives here as two: one to remove, and one to apply with another UID. The new one
// takes the objects over, so that the workloads live on; what it does not take is
// removed afterwards.

// successorPoll is how often a removal looks whether its successor is done.
const successorPoll = 200 * time.Millisecond

// last says whether an order ends a Release.
func last(order tunnel.Order) bool {
	return order.Verb == tunnel.VerbRemove || order.Verb == tunnel.VerbRelease
}

// inherits says whether an object with that owner passes to r: its owner is a Release
// of the same name that is on its way out.
func (r *release) inherits(owner string) bool {
	uid, ok := strings.CutPrefix(owner, r.runner.hub+"/")
	if !ok {
		return false
	}
	r.runner.mu.Lock()
	old := r.runner.releases[uid]
	r.runner.mu.Unlock()
	if old == nil || old == r {
		return false
	}
	old.mu.Lock()
	ref, leaving := old.ref, last(old.order)
	old.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	return leaving && ref.Namespace == r.ref.Namespace && ref.Name == r.ref.Name
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
