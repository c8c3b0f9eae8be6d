// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

// runHook brings a hook to its end, from wherever its last run is.
func (r *release) runHook(ctx context.Context, order tunnel.Order, p *plan, h *hook, phase string) error {
	run, err := r.nextRun(order, h, phase)
	if err != nil || run == nil {
		return err
	}
	// From here on a restart finds the run, whether its object was made or not.
	if err := r.save(ctx); err != nil {
		return err
	}
	var broken *brokenHook
	err = r.carryHook(ctx, order, p, h, run)
	switch {
	case err == nil:
		r.endRun(run, runDone, "")
	case errors.As(err, &broken):
		r.mu.Lock()
		r.stopRunLocked(run, runFailed, broken.why)
		// What failed by itself stays to be looked at, unless its policy is another;
		// what would go on for ever does not.
		run.Doomed = run.Doomed && (h.onFailure || broken.late)
		r.mu.Unlock()
	default:
		return err // the run goes on when the operation does
	}
	r.log.Info("hook ended", "hook", run.Hook, "phase", phase, "run", run.Run, "state", run.State, "message", run.Message)
	if err := r.save(ctx); err != nil {
		return err
	}
	if broken == nil {
		return nil
	}
	r.sweepHooks(ctx)
	return newHookError(run)
}

// nextRun is the run that is to be brought to its end, an old one or a new; nil: none.
func (r *release) nextRun(order tunnel.Order, h *hook, phase string) (*HookRun, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.lastRunLocked(h.id, phase)
	if run != nil && phase == phaseSyncFailed {
		// These run once for each order that failed, and are not tried again.
		if run.isOf(order) && run.State != runRunning {
			return nil, nil
		}
		if run.State != runRunning {
			run = nil
		}
	}
	switch {
	case run == nil:
	case run.State == runRunning:
		if run.UID == "" {
			// Its object was not made, or just so: the time without us does not count.
			run.StartedAt = r.runner.moments.told(r.now())
			run.Deadline = run.StartedAt.Add(h.timeoutFor(order))
		}
		return run, nil
	case run.passed():
		return nil, nil
	case run.State == runAborted && !run.Again, run.State == runFailed && r.restsLocked(order):
		return nil, newHookError(run)
	}
	return r.newRunLocked(h, phase, order, h.timeoutFor(order)), nil
}

// brokenHook says why a run has failed; any other error only interrupts it.
type brokenHook struct {
	why  string
	late bool // it had not ended at its deadline
}

func (e *brokenHook) Error() string { return e.why }

func tooLate(after time.Duration, why string) error {
	return &brokenHook{why: fmt.Sprintf("DeadlinePassed: after %s it still %s", after.Round(time.Second), why), late: true}
}

// carryHook makes the object of a run, if it is not there yet, and waits until it has
// done what it is there for. nil: it has.
func (r *release) carryHook(ctx context.Context, order tunnel.Order, p *plan, h *hook, run *HookRun) error {
	deadline := r.localTime(run.Deadline)
	r.setDeadline(deadline)
	late := func(why string) error { return tooLate(run.Deadline.Sub(run.StartedAt), why) }
	// Its kind may come by a definition that was made a moment ago.
	for attempt := 0; ; attempt++ {
		err := r.placeHook(ctx, order, p, h)
		if err == nil {
			break
		}
		if err := r.again(ctx, order, p, h, err, attempt, deadline); err != nil {
			return err
		}
		if !r.now().Before(deadline) {
			return late("cannot be made: " + explain(err, isSecret(h.id)))
		}
	}
	content, err := r.content(ctx, p.render, h.line, h.digest)
	if err != nil {
		return err
	}
	s := &sight{run: run.Run, uid: run.UID}
	o := r.sighted(h, s)
	defer r.unsighted(o)
	for attempt := 0; ; attempt++ {
		err := r.makeHook(ctx, order, h, run, o, content, deadline)
		if err == nil {
			break
		}
		if err := r.again(ctx, order, p, h, err, attempt, deadline); err != nil {
			return err
		}
		if !r.now().Before(deadline) {
			return late("cannot be made: " + explain(err, isSecret(h.id)))
		}
	}
	if err := r.hookMade(ctx, h, run, s); err != nil {
		return err
	}
	return r.awaitHook(ctx, order, h, run, s, deadline)
}

// awaitHook waits until the object of a run has done what it is there for.
func (r *release) awaitHook(ctx context.Context, order tunnel.Order, h *hook, run *HookRun, s *sight, deadline time.Time) error {
	for {
		at := deadline
		met, err := r.waitUntil(ctx, order, at, func() bool {
			r.mu.Lock()
			ended, due := s.verdictLocked(r.now())
			gone, why := s.gone, s.why
			r.mu.Unlock()
			if !due.IsZero() && due.Before(at) {
				at = due
			}
			if ended == outcomeOpen && !gone {
				r.showBlocked(clip(fmt.Sprintf("waiting for %s hook %s: %s", run.Phase, h.id, why), maxMessage))
			}
			return ended != outcomeOpen || gone || at.Before(deadline)
		})
		if err != nil {
			return err
		}
		if at.Before(deadline) {
			// It may be a moment's: what it is then counts.
			if _, err := r.waitUntil(ctx, order, at, func() bool {
				r.mu.Lock()
				defer r.mu.Unlock()
				ended, due := s.verdictLocked(r.now())
				return ended != outcomeOpen || due.IsZero() || s.gone
			}); err != nil {
				return err
			}
		}
		r.mu.Lock()
		ended, _ := s.verdictLocked(r.now())
		gone, why := s.gone, s.why
		r.mu.Unlock()
		switch {
		case ended == outcomeDone:
			return nil
		case ended == outcomeFailed:
			return &brokenHook{why: why}
		case gone:
			return &brokenHook{why: "it was deleted before it was seen to end"}
		case !met:
			return tooLate(run.Deadline.Sub(run.StartedAt), why)
		}
	}
}

// again waits a moment before a hook is tried once more that could not be made, or says
// that it never can.
func (r *release) again(ctx context.Context, order tunnel.Order, p *plan, h *hook, cause error, attempt int, deadline time.Time) error {
	var broken *brokenHook
	var owned *ownedByOtherError
	var outside *outsideError
	var forbidden *forbiddenError
	var fields *conflictError
	switch {
	case errors.Is(cause, errStopped), errors.Is(cause, errSuperseded), ctx.Err() != nil, errors.As(cause, &broken):
		return cause
	case errors.Is(cause, errForeignHook), errors.As(cause, &owned), errors.As(cause, &outside), errors.As(cause, &forbidden), errors.As(cause, &fields):
		return &brokenHook{why: cause.Error()}
	}
	always := func(groupKind, definition) bool { return true }
	switch classify(cause, p.around(&h.item, order, always, false)) {
	case rejected, invalid, conflicting:
		return &brokenHook{why: explain(cause, isSecret(h.id))}
	case cannotTell, deferred, raced, noNamespace:
	}
	r.showBlocked(clip(fmt.Sprintf("waiting for hook %s: %s", h.id, explain(cause, isSecret(h.id))), maxMessage))
	at := r.now().Add(backoff(attempt, objectRetryMin, objectRetryMax))
	if deadline.Before(at) {
		at = deadline
	}
	_, err := r.waitUntil(ctx, order, at, func() bool { return false })
	return err
}
