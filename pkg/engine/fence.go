// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// A remove order names the inventory that it is about: the one that the hub knew. If
// it is neither what is here now nor what the hub has acknowledged last, then the hub
// decided about something else: the order is refused, and the inventory sent again, so
// that the next order can be about it. One without a fence, as of a hub that never was
// told of an inventory, is not held up: nothing must become undeletable.

// fenceError says why a remove order is stale.
func (r *release) fenceError(order tunnel.Order) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fenceErrorLocked(order)
}

func (r *release) fenceErrorLocked(order tunnel.Order) error {
	if order.Verb != tunnel.VerbRemove || order.Fence == "" || order.Fence == r.acknowledged {
		return nil
	}
	if !r.restored && !r.runner.Loaded() {
		return nil // checked when its record is read
	}
	if last(r.order) || order.Fence == tunnel.FenceOf(r.inventoryLocked()) {
		return nil // a removal that is under way shrinks what it is about
	}
	// It has to be told, also while an operation is under way.
	r.inventoryNew, r.inventorySent, r.inventoryDue = true, 0, true
	r.dirty = true
	return fmt.Errorf("%w: it is about another one than what is here now", ErrInventoryMoved)
}

// tooOld says whether a remove order was issued so long ago that nobody can be taken to
// want it any more.
func (rn *Runner) tooOld(order tunnel.Order) bool {
	return order.Verb == tunnel.VerbRemove && !order.IssuedAt.IsZero() && rn.hubTime().Sub(order.IssuedAt) > maxOrderAge
}

// refuseFencedLocked is for an order that was accepted before the state was read: what was
// found then may be another inventory than it is about.
func (r *release) refuseFencedLocked(order tunnel.Order) bool {
	err := r.fenceErrorLocked(order)
	if err == nil {
		return false
	}
	refusal := &Refusal{Reason: v1alpha1.ReasonOrderRefused, Sequence: order.Sequence, Err: err}
	r.runner.meter.refusals.WithLabelValues(refusal.Reason).Inc()
	r.refusal = &tunnel.Finding{Status: tunnel.False, Reason: refusal.Reason, Message: clip(refusal.Error(), maxMessage)}
	r.refused = order.Sequence
	return true
}
