// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// holdStill carries out an order that suspends the Release: nothing is changed on the
// cluster, by it or until the next order. What runs is compared with what was applied
// and told. A sync that was under way stays where it is, and is gone on with by the
// order that ends the suspension.
func (r *release) holdStill(ctx context.Context, order tunnel.Order) error {
	now := r.now()
	r.mu.Lock()
	if r.applied != nil && r.applied.Objects == *order.Objects {
		next := *r.applied
		next.Sequence = order.Sequence
		r.applied = &next
		r.finding = tunnel.Finding{Status: tunnel.True, Reason: v1alpha1.ReasonApplied}
	} else {
		r.finding = tunnel.Finding{
			Status: tunnel.False, Reason: v1alpha1.ReasonSuspended,
			Message: "suspended before the render was applied in full; what runs is left as it is",
		}
	}
	if r.op != nil && r.op.Phase == v1alpha1.PhaseRunning {
		r.op.Phase, r.op.FinishedAt, r.op.Deadline, r.op.Message = v1alpha1.PhaseFailed, &now, nil, "suspended"
	}
	r.settled, r.dirty = true, true
	for _, o := range r.objects {
		r.reviewLocked(o, o.view(), now)
	}
	r.mu.Unlock()
	r.report()
	return r.save(ctx)
}
