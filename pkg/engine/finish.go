// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// finishSync prunes, marks the render as applied, waits for the health of what was
// applied last, and runs the hooks that come after it.
func (r *release) finishSync(ctx context.Context, order tunnel.Order, p *plan) error {
	if err := r.prune(ctx, order, p); err != nil {
		if isHeld(err) {
			return err // told already, and nothing to try again
		}
		return r.failHooked(ctx, order, p, err, v1alpha1.ReasonPruneFailed)
	}
	r.letGoAll(p)
	after := r.has(p, phasePostSync)
	r.mu.Lock()
	r.applied, r.attempt, r.resumed = p.render, nil, false
	r.problems = nil
	r.inventoryNew, r.inventorySent = true, 0
	if !after {
		r.finding = tunnel.Finding{Status: tunnel.True, Reason: v1alpha1.ReasonApplied, Message: r.leftLocked()}
	}
	r.dirty = true
	deadline := r.now().Add(timeoutOf(order))
	r.mu.Unlock()
	r.half(!after && !r.has(p, phaseSyncFailed))
	if err := r.save(ctx); err != nil {
		return r.failSync(ctx, order, err, v1alpha1.ReasonUnknown)
	}
	r.runner.tidy()
	r.setDeadline(deadline)
	blocked := ""
	met, err := r.waitUntil(ctx, order, deadline, func() bool {
		blocked = r.blocker(p.items)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.op != nil && r.op.Message != blocked {
			r.op.Message = blocked
			r.dirty = true
		}
		return blocked == ""
	})
	if err != nil {
		return err
	}
	late := fmt.Sprintf("after %s still %s", timeoutOf(order), blocked)
	switch {
	case after && !met:
		err := &waveError{finding: tunnel.Finding{
			Status: tunnel.False, Reason: v1alpha1.ReasonDeadline, Message: clip(late, maxMessage-80) + "; hooks that follow health were not run",
		}}
		return r.failHooked(ctx, order, p, err, v1alpha1.ReasonDeadline)
	case after:
		if err := r.runPhase(ctx, order, p, phasePostSync); err != nil {
			return r.failHooked(ctx, order, p, err, v1alpha1.ReasonUnknown)
		}
	case !met:
		if err := r.syncFailed(ctx, order, p); err != nil {
			return err
		}
	}
	r.settleSync(order, met, late)
	if !p.running {
		return nil
	}
	r.half(true)
	if err := r.save(ctx); err != nil {
		return r.failSync(ctx, order, err, v1alpha1.ReasonUnknown)
	}
	return nil
}

// settleSync shows that a sync has come to its end, with all objects healthy or not.
func (r *release) settleSync(order tunnel.Order, met bool, late string) {
	now := r.now()
	r.mu.Lock()
	if r.order.Sequence != order.Sequence {
		r.mu.Unlock()
		return // it would be told of the newer order
	}
	r.settled = true
	r.finding = tunnel.Finding{Status: tunnel.True, Reason: v1alpha1.ReasonApplied, Message: r.leftLocked()}
	if r.op != nil {
		r.op.Phase, r.op.FinishedAt, r.op.Deadline, r.op.Message = v1alpha1.PhaseSucceeded, &now, nil, ""
		if !met {
			r.op.Phase, r.op.Message = v1alpha1.PhaseFailed, clip(late, maxMessage)
		}
		r.runner.meter.operation(order.Verb, met, now.Sub(r.op.StartedAt))
	}
	r.dirty = true
	r.mu.Unlock()
	r.report()
}
