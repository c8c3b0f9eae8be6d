// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"

	"kumodo.io/convoy/pkg/tunnel"
)

// preDelete runs what comes before a removal deletes its first object. A remove order
// names no render: the hooks are those of the one applied in full last. The plan that
// it gives is nil when there are none.
func (r *release) preDelete(ctx context.Context, order tunnel.Order) (*plan, error) {
	r.mu.Lock()
	applied := r.applied
	r.mu.Unlock()
	// Of a Release that was made anew under its name the workloads live on: what says
	// farewell to them would harm.
	if applied == nil || !applied.Hooks || r.outlived() {
		r.mu.Lock()
		r.leaveRoundLocked(order)
		r.mu.Unlock()
		r.sweepHooks(ctx)
		return nil, nil //nolint:nilnil // no plan, and no error
	}
	p, err := r.plan(ctx, ofRender(order, applied), applied)
	if err != nil {
		if ctx.Err() != nil {
			return nil, errStopped
		}
		return nil, fmt.Errorf("read the hooks of the render that was applied last: %w", err)
	}
	p.running = r.beginRound(order, p, true)
	if err := r.save(ctx); err != nil {
		return nil, err
	}
	r.sweepHooks(ctx)
	r.mu.Lock()
	half := r.round == nil || r.round.Half
	r.mu.Unlock()
	if !p.running || half {
		return p, nil
	}
	return p, r.runPhase(ctx, ofRender(order, applied), p, phasePreDelete)
}

// postDelete runs what comes after the last object is gone.
func (r *release) postDelete(ctx context.Context, order tunnel.Order, p *plan) error {
	if p != nil && p.running {
		r.half(false)
		if err := r.save(ctx); err != nil {
			return err
		}
		if err := r.runPhase(ctx, ofRender(order, p.render), p, phasePostDelete); err != nil {
			return err
		}
		r.half(true)
	}
	return nil
}

// ofRender is an order as the hooks of a render need it.
func ofRender(order tunnel.Order, render *Render) tunnel.Order {
	order.Policy.Namespace, order.Policy.AllowEmpty = render.Namespace, true
	order.Requires = []string{tunnel.FeatureHooks}
	return order
}

// leaveHooks ends a removal: Jobs and Pods of hooks go with the Release, but for those
// of PostDelete. All else that hooks made may hold data that no render brings back, and
// is left.
func (r *release) leaveHooks(ctx context.Context, order tunnel.Order) error {
	r.missHooks(ctx)
	if err := r.checkpoint(ctx, order); err != nil {
		return err
	}
	r.mu.Lock()
	for _, run := range r.runs {
		if run.Gone || run.UID == "" {
			continue
		}
		if isRun(run.Identity) && run.mayGo() && run.Phase != phasePostDelete {
			run.Doomed = true
		}
		switch {
		case !run.made():
			r.leaveLocked(fmt.Sprintf("left %s, which was there before a %s hook", run.Identity, run.Phase))
		case !run.Doomed:
			r.leaveLocked(fmt.Sprintf("left %s, which a %s hook made", run.Identity, run.Phase))
		}
	}
	r.mu.Unlock()
	r.sweepHooks(ctx)
	if err := r.checkpoint(ctx, order); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range r.runs {
		if run.Doomed && !run.Gone {
			return &hookLeftError{what: run.Identity.String()}
		}
	}
	return nil
}

// hookLeftError: the object of a hook cannot be deleted now.
type hookLeftError struct{ what string }

func (e *hookLeftError) Error() string { return e.what + " of a hook is not deleted yet" }

// hookObjectsLocked are the objects that hooks made and that are still there, to be
// left without our marks.
func (r *release) hookObjectsLocked() []*object {
	var out []*object
	for _, run := range r.runs {
		if run.UID != "" && !run.Gone {
			out = append(out, &object{id: run.Identity, version: run.Version, uid: run.UID})
		}
	}
	return out
}

// isAborted says whether a person ended the hook that stopped an operation: it is not
// tried again by itself.
func isAborted(err error) bool {
	var stopped *hookError
	return errors.As(err, &stopped) && stopped.aborted
}
