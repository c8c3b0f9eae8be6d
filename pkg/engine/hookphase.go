// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	if r.toldBefore(order, cause) {
		return r.failSync(ctx, order, cause, reason)
	}
	if err := r.syncFailed(ctx, order, p); err != nil {
		return err
	}
	return r.failSync(ctx, order, cause, reason)
}

// toldBefore says whether a sync ends with a run that was aborted after the hooks for a
// sync that has failed had run for it, for an earlier order: that it is given up is
// nothing new to them.
func (r *release) toldBefore(order tunnel.Order, cause error) bool {
	var stopped *hookError
	if !errors.As(cause, &stopped) || !stopped.aborted {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.Index(r.runs, r.lastRunLocked(stopped.id, stopped.phase))
	if at < 0 {
		return false
	}
	begun, _, _ := strings.Cut(r.runs[at].Run, "-") // the order that the run was made for
	for i, run := range r.runs {
		if run.Phase != phaseSyncFailed || run.Round != r.runs[at].Round || run.isOf(order) {
			continue
		}
		// They run after the first attempt of an order, which need not be the last.
		if i > at || strings.HasPrefix(run.Run, begun+"-") {
			return true
		}
	}
	return false
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
