// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// beginRound finds the round that an order belongs to, or begins one, and takes in what
// people want of its runs. It says whether hooks are to be run: for a render that is not
// the one applied in full last, when it is forced, for a removal, or since a round for
// the same render is not over.
func (r *release) beginRound(order tunnel.Order, p *plan, removal bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	digest := p.render.Objects.Digest
	round := r.round
	same := round != nil && round.Removal == removal && round.Render == digest
	switch {
	case same && (round.Sequence == order.Sequence || !round.Ended && !order.Force):
	case len(p.hooks) == 0, !removal && !order.Force && r.applied != nil && r.applied.Objects.Digest == digest:
		r.leaveRoundLocked(order)
		return false
	default:
		r.leaveRoundLocked(order)
		r.round = &HookRound{Sequence: order.Sequence, Render: digest, Removal: removal, Upgrade: r.applied != nil}
	}
	r.actLocked(order)
	return !r.round.Ended
}

// leaveRoundLocked gives a round up: what still runs is of no use to anybody.
func (r *release) leaveRoundLocked(order tunnel.Order) {
	r.round = nil
	for _, run := range r.runs {
		if run.State == runRunning {
			r.stopRunLocked(run, runAborted, fmt.Sprintf("order %d came before it had ended", order.Sequence))
		}
	}
}

// stopRunLocked ends a run whose object may still be at work.
func (r *release) stopRunLocked(run *HookRun, state, message string) {
	run.Doomed = run.mayGo()
	r.endRunLocked(run, state, message, r.runner.moments.told(r.now()))
}

// actLocked does what people asked for about runs. Each action holds for the one run
// that it names, as long as that is the last one of its hook; so it does no harm that
// an order carries it for a long time.
func (r *release) actLocked(order tunnel.Order) {
	for _, action := range order.Actions {
		i := slices.IndexFunc(r.runs, func(run *HookRun) bool { return run.Hook == action.Hook && run.Run == action.Run })
		if i < 0 || r.lastRunLocked(r.runs[i].Identity, r.runs[i].Phase) != r.runs[i] {
			continue
		}
		run := r.runs[i]
		switch v1alpha1.HookAction(action.Action) {
		case v1alpha1.HookSkip:
			if run.State != runDone && run.State != runSkipped {
				r.stopRunLocked(run, runSkipped, "skipped: "+run.Message)
			}
		case v1alpha1.HookAbort:
			if run.State == runRunning || run.State == runFailed {
				r.stopRunLocked(run, runAborted, "aborted: "+run.Message)
			}
		case v1alpha1.HookRetry:
			run.Again = run.Again || run.State == runAborted
		}
	}
}

// upgradeRound notes that objects of the Release were there before it was first
// applied here: what only an installation does was done.
func (r *release) upgradeRound(p *plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.round == nil || r.round.Upgrade || r.attempt != nil {
		return
	}
	r.round.Upgrade = slices.ContainsFunc(p.items, func(it *item) bool { return it.marked })
}

// half notes that the middle of the round is over, and whether all of it is.
func (r *release) half(ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.round != nil {
		r.round.Half, r.round.Ended = true, ended
	}
}

// roundOpenLocked says whether a round for the render of an order is not over.
func (r *release) roundOpenLocked(order tunnel.Order) bool {
	return r.round != nil && !r.round.Ended && !r.round.Removal && order.Objects != nil && r.round.Render == order.Objects.Digest
}

// restAfterLocked makes a hook that failed before a restart wait as long as it would
// have without one.
func (r *release) restAfterLocked() {
	if r.round == nil {
		return
	}
	for _, run := range r.runs {
		if run.Round != r.round.Sequence || run.State != runFailed || run.FinishedAt == nil {
			continue
		}
		failures := 0
		for _, other := range r.runs {
			if other.Round == run.Round && other.Identity == run.Identity && other.Phase == run.Phase && other.State == runFailed {
				failures++
			}
		}
		if until := run.FinishedAt.Add(backoff(failures-1, retryMin, retryMax)); until.After(r.restUntil) {
			r.restUntil, r.restFor = until, r.order.Sequence
			r.retries = max(r.retries, failures-1)
		}
	}
}

// restsLocked says whether a hook that failed before a restart is not to run yet.
func (r *release) restsLocked(order tunnel.Order) bool {
	return r.restFor == order.Sequence && r.runner.moments.told(r.now()).Before(r.restUntil)
}

// timeoutFor is how long one run of a hook may take.
func (h *hook) timeoutFor(order tunnel.Order) time.Duration {
	if h.timeout > 0 {
		return h.timeout
	}
	return timeoutOf(order)
}
