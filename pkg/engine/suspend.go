// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// holdStill takes note of an order of a Release that is suspended: nothing is tried,
// applied or deleted, whatever is missing or was changed by hand, and what a sync had
// begun stays as far as it came. Drift and health are told as before; heals says that
// nothing is repaired.
func (r *release) holdStill(ctx context.Context, order tunnel.Order) error {
	r.begin(v1alpha1.OperationSync, order)
	if err := r.stageRules(ctx, order); err != nil { // to judge is not to apply
		return r.failRules(ctx, order, err)
	}
	finding := tunnel.Finding{
		Status: tunnel.False, Reason: v1alpha1.ReasonSuspended,
		Message: "suspended before the render was applied in full",
	}
	r.mu.Lock()
	if r.applied != nil && r.applied.Objects == *order.Objects && r.attempt == nil && !r.roundOpenLocked(order) {
		same := *r.applied
		same.Sequence = order.Sequence // a restart finds the order carried out
		r.applied = &same
		finding = tunnel.Finding{Status: tunnel.True, Reason: v1alpha1.ReasonApplied, Message: r.leftLocked()}
	}
	r.mu.Unlock()
	return r.end(ctx, order, finding, nil)
}
