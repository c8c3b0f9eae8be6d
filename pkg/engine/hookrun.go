// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// hookError says which hook stopped an operation. One that was aborted is not tried
// again.
type hookError struct {
	phase, name string
	id          manifest.Identity
	why         string
	aborted     bool
}

func (e *hookError) Error() string {
	name := e.name
	if name != hookName(e.id) {
		name += " (" + e.id.String() + ")"
	} else {
		name = e.id.String()
	}
	verb := "failed"
	if e.aborted {
		verb = "was ended"
	}
	return fmt.Sprintf("%s hook %s %s: %s; %s", e.phase, name, verb, clip(e.why, maxMessage/2), consequence(e.phase))
}

// consequence tells what a hook that failed means for what runs.
func consequence(phase string) string {
	switch phase {
	case phasePreSync:
		return "nothing of the render was applied"
	case phasePostSync:
		return "all objects are applied"
	case phasePreDelete:
		return "nothing was deleted"
	case phasePostDelete:
		return "all objects are deleted"
	}
	return "the sync had failed before"
}

func newHookError(run *HookRun) *hookError {
	return &hookError{phase: run.Phase, name: run.Hook, id: run.Identity, why: run.Message, aborted: run.State == runAborted}
}

// has says whether hooks of a phase are to be run for an order.
func (r *release) has(p *plan, phase string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return p.running && r.round != nil && len(p.hooksOf(phase, r.round.Upgrade)) > 0
}

// preSync runs what comes before the first object of a render.
func (r *release) preSync(ctx context.Context, order tunnel.Order, p *plan, changed func(groupKind, definition) bool) error {
	r.sweepHooks(ctx)
	if !p.running {
		return nil
	}
	r.upgradeRound(p)
	r.mu.Lock()
	round := *r.round
	r.mu.Unlock()
	hooks := p.hooksOf(phasePreSync, round.Upgrade)
	if round.Half || len(hooks) == 0 {
		return nil
	}
	if err := r.provide(ctx, order, p, hooks, changed); err != nil {
		return err
	}
	return r.runPhase(ctx, order, p, phasePreSync)
}

// failHooked ends a sync that an error stopped after something was begun: the hooks for
// that come first.
func (r *release) failHooked(ctx context.Context, order tunnel.Order, p *plan, cause error, reason string) error {
	if ctx.Err() != nil || errors.Is(cause, errSuperseded) || errors.Is(cause, errStopped) {
		return r.failSync(ctx, order, cause, reason)
	}
	if err := r.syncFailed(ctx, order, p); err != nil {
		return err
	}
	return r.failSync(ctx, order, cause, reason)
}

// syncFailed runs the hooks of a sync that has failed. That they fail themselves changes
// nothing any more; an error only says that the operation ends here.
func (r *release) syncFailed(ctx context.Context, order tunnel.Order, p *plan) error {
	if !r.has(p, phaseSyncFailed) {
		return nil
	}
	err := r.runPhase(ctx, order, p, phaseSyncFailed)
	var stopped *hookError
	if err == nil || errors.As(err, &stopped) {
		return nil // its run says so
	}
	if ctx.Err() != nil || errors.Is(err, errSuperseded) || errors.Is(err, errStopped) {
		return err
	}
	r.log.Error(err, "hooks of a failed sync not run")
	return nil
}

// runPhase runs the hooks of a phase one after the other, in the order of their waves.
// Those that have succeeded in this round are not run again. The first that fails ends
// it.
func (r *release) runPhase(ctx context.Context, order tunnel.Order, p *plan, phase string) error {
	r.mu.Lock()
	upgrade := r.round != nil && r.round.Upgrade
	r.mu.Unlock()
	hooks := p.hooksOf(phase, upgrade)
	if len(hooks) == 0 {
		return nil
	}
	for _, h := range hooks {
		if err := r.checkpoint(ctx, order); err != nil {
			return err
		}
		if err := r.runHook(ctx, order, p, h, phase); err != nil {
			return err
		}
	}
	r.showBlocked("")
	return r.phasePassed(ctx, hooks, phase)
}

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
		return run, nil
	case run.passed():
		return nil, nil
	case run.State == runAborted, r.restsLocked(order):
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
	switch {
	case errors.Is(cause, errStopped), errors.Is(cause, errSuperseded), ctx.Err() != nil, errors.As(cause, &broken):
		return cause
	case errors.Is(cause, errForeignHook), errors.As(cause, &owned), errors.As(cause, &outside), errors.As(cause, &forbidden):
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

// makeHook makes the object of a run, or finds the one that it made.
func (r *release) makeHook(ctx context.Context, order tunnel.Order, h *hook, run *HookRun, o *object, content map[string]any, deadline time.Time) error {
	if err := r.letGo(ctx, run, o); err != nil {
		return err
	}
	for range maxRaces {
		live, err := r.runner.target.get(ctx, *h.res, h.id.Namespace, h.id.Name)
		if apierrors.IsNotFound(err) {
			live, err = nil, nil
		}
		if err != nil {
			return err
		}
		if live != nil {
			r.observe(o, live)
		}
		r.mu.Lock()
		found := o.sight.uid != "" && live != nil && metaText(live, "uid") == o.sight.uid
		if run.UID != "" && !found {
			o.sight.gone = true // it is not made twice
		}
		gone := o.sight.gone
		r.mu.Unlock()
		if found || gone {
			return nil
		}
		pre := precondition{create: true}
		if live != nil {
			annotations := annotationTexts(live)
			if err := r.mayReplace(h, metaText(live, "uid"), annotations); err != nil {
				return err
			}
			stays := h.inPlace() || annotations[v1alpha1.AnnotationOwner] == "" || deleteRules{removal: true}.annotated(annotations) != ""
			if metaText(live, "deletionTimestamp") != "" || !stays {
				if err := r.makeRoom(ctx, order, h, o, live, deadline); err != nil {
					return err
				}
				continue
			}
			if isRun(h.id) {
				return &brokenHook{why: "what an earlier run left is kept, and cannot run again: delete it, or do not annotate it to be kept"}
			}
			pre = precondition{uid: metaText(live, "uid"), resourceVersion: metaText(live, "resourceVersion")}
		}
		answer, err := r.applyHook(ctx, order, h, run, content, pre)
		if apierrors.IsConflict(err) && len(conflictsOf(err)) == 0 || classify(err, surroundings{}) == raced {
			continue
		}
		if err != nil {
			return err
		}
		r.observe(o, answer)
		return nil
	}
	return errRaced
}

// applyHook sends the object of a run to the server.
func (r *release) applyHook(ctx context.Context, order tunnel.Order, h *hook, run *HookRun, content map[string]any, pre precondition) (map[string]any, error) {
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s has no metadata", h.id)
	}
	if err := put(metadata, "annotations", v1alpha1.AnnotationHookRun, run.Run); err != nil {
		return nil, fmt.Errorf("%s: %w", h.id, err)
	}
	body, err := r.marks.body(content, h.id, pre)
	if err != nil {
		return nil, err
	}
	answer, _, err := r.runner.target.apply(ctx, *h.res, h.id.Namespace, h.id.Name, body, true, false)
	around := surroundings{madeNamespace: h.id.Namespace != "" && h.id.Namespace == order.Policy.Namespace}
	if err != nil && classify(err, around) == noNamespace {
		if err := r.ensureNamespace(ctx, h.id.Namespace); err != nil {
			return nil, err
		}
		answer, _, err = r.runner.target.apply(ctx, *h.res, h.id.Namespace, h.id.Name, body, true, false)
	}
	return answer, err
}

// hookMade writes down which object a run has made; what earlier runs made under its
// name is no more.
func (r *release) hookMade(ctx context.Context, h *hook, run *HookRun, s *sight) error {
	r.mu.Lock()
	news := s.uid != "" && run.UID != s.uid
	if news {
		run.UID = s.uid
		for _, old := range r.runs {
			if old != run && old.Identity == h.id {
				old.Gone, old.Doomed = true, false
			}
		}
		r.dirty = true
	}
	r.mu.Unlock()
	if !news {
		return nil
	}
	return r.save(ctx)
}

// letGo takes an object out of the inventory that is a hook now. It is not pruned; the
// hook may replace it.
func (r *release) letGo(ctx context.Context, run *HookRun, seen *object) error {
	r.mu.Lock()
	o := r.objects[seen.id]
	if o != nil {
		run.Former = o.uid
		r.dropLocked(o)
		r.runner.track(seen.res, r, seen, true)
	}
	r.mu.Unlock()
	if o == nil {
		return nil
	}
	return r.save(ctx)
}

// letGoAll does so for all hooks of a plan, before what left the render is pruned.
func (r *release) letGoAll(p *plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range p.hooks {
		if o := r.objects[h.id]; o != nil {
			r.dropLocked(o)
		}
	}
}
