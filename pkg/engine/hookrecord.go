// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// Hooks is what a Record keeps of the hooks of a Release: enough to go on at any point
// of any run without losing or repeating it.
type Hooks struct {
	Round *HookRound `json:"round,omitempty"`
	// Runs, oldest first.
	Runs []HookRun `json:"runs,omitempty"`
	// Formers are objects of the Release that hooks of the render stand for now.
	Formers []Former `json:"formers,omitempty"`
}

// Former is an object that was applied by this Release before it became a hook, of which
// no run may be known yet.
type Former struct {
	manifest.Identity
	UID string `json:"uid"`
	// Created: it did not exist before it was first applied.
	Created bool `json:"created,omitempty"`
}

// HookRound is one way through the phases: of one render that is applied, or of the
// removal of the one that was. It is over once; until then it is gone on with by every
// order for that render, so that an order that only changes a policy runs nothing anew.
type HookRound struct {
	// Sequence of the order that began it.
	Sequence int64 `json:"sequence"`
	// Render is the digest of the objects that the hooks stand among.
	Render string `json:"render"`
	// Removal: the phases are PreDelete and PostDelete.
	Removal bool `json:"removal,omitempty"`
	// Upgrade: a render of the Release was applied in full before.
	Upgrade bool `json:"upgrade,omitempty"`
	// Half: the phase in the middle is over: all is applied, or deleted.
	Half bool `json:"half,omitempty"`
	// Ended: all phases are over.
	Ended bool `json:"ended,omitempty"`
}

// HookRun is one run of a hook, and the object that it made. It is written down before
// the object is made. Times are by the hub's clock.
type HookRun struct {
	manifest.Identity
	Version string `json:"version"`
	Hook    string `json:"hook"`
	Phase   string `json:"phase"`
	Run     string `json:"run"`
	// Round is the sequence of its round.
	Round int64  `json:"round"`
	State string `json:"state"`
	// UID of the object; empty until the answer to its creation was written down.
	UID string `json:"uid,omitempty"`
	// Former is the UID of an object that was applied before it became a hook, and that
	// the run may replace.
	Former string `json:"former,omitempty"`
	// Onto is the UID of an object that this Release did not make, and that the hook was
	// applied to where it is.
	Onto string `json:"onto,omitempty"`
	// Created: the object with that UID was made by a hook of this Release. Any other is
	// never deleted.
	Created bool `json:"created,omitempty"`
	// Again: it was aborted, and somebody said afterwards that the hook is to run again.
	Again bool `json:"again,omitempty"`
	// OnSuccess: the object goes when the phase has succeeded. Keep: it never goes.
	OnSuccess bool `json:"onSuccess,omitempty"`
	Keep      bool `json:"keep,omitempty"`
	// Doomed: the object is to be deleted now. Gone: it was, or is nobody's business.
	Doomed     bool       `json:"doomed,omitempty"`
	Gone       bool       `json:"gone,omitempty"`
	StartedAt  time.Time  `json:"startedAt"`
	Deadline   time.Time  `json:"deadline"`
	FinishedAt *time.Time `json:"finishedAt,omitempty"`
	Message    string     `json:"message,omitempty"`
}

// Words of a run's state.
const (
	runRunning = string(v1alpha1.HookRunning)
	runDone    = string(v1alpha1.HookDone)
	runFailed  = string(v1alpha1.HookBroken)
	runSkipped = string(v1alpha1.HookSkipped)
	runAborted = string(v1alpha1.HookCancelled)
)

// passed says that the sync goes on after the run.
func (run *HookRun) passed() bool { return run.State == runDone || run.State == runSkipped }

// hooksLocked is what a record is to keep; nil: nothing.
func (r *release) hooksLocked() *Hooks {
	if r.round == nil && len(r.runs) == 0 && len(r.formers) == 0 {
		return nil
	}
	out := &Hooks{Runs: make([]HookRun, 0, len(r.runs)), Formers: slices.Clone(r.formers)}
	if r.round != nil {
		round := *r.round
		out.Round = &round
	}
	for _, run := range r.runs {
		out.Runs = append(out.Runs, *run)
	}
	return out
}

// restoreHooksLocked takes in what a record kept.
func (r *release) restoreHooksLocked(h *Hooks) {
	r.round, r.runs, r.formers = nil, nil, nil
	if h == nil {
		return
	}
	r.round, r.formers = h.Round, h.Formers
	for i := range h.Runs {
		run := h.Runs[i]
		r.runs = append(r.runs, &run)
	}
}

// newRunLocked writes a run down that is about to begin.
func (r *release) newRunLocked(h *hook, phase string, order tunnel.Order, timeout time.Duration) *HookRun {
	attempt, former, onto := 1, "", ""
	for _, old := range r.runs {
		if old.Identity != h.id {
			continue
		}
		former, onto = old.Former, old.Onto
		if old.isOf(order) {
			attempt++
		}
	}
	now := r.runner.moments.told(r.now())
	run := &HookRun{
		Identity: h.id, Version: h.version, Hook: h.called(), Phase: phase, Run: runPrefix(order) + strconv.Itoa(attempt),
		Round: r.round.Sequence, State: runRunning, OnSuccess: h.onSuccess, Keep: h.keep, Former: former, Onto: onto,
		StartedAt: now, Deadline: now.Add(timeout),
	}
	r.runs = append(r.runs, run)
	r.trimRunsLocked()
	r.dirty = true
	return run
}

// runPrefix begins the names of all runs for an order.
func runPrefix(order tunnel.Order) string { return strconv.FormatInt(order.Sequence, 10) + "-" }

// isOf says whether a run was made for an order.
func (run *HookRun) isOf(order tunnel.Order) bool {
	return strings.HasPrefix(run.Run, runPrefix(order))
}

// trimRunsLocked forgets the oldest runs that are over and left nothing.
func (r *release) trimRunsLocked() {
	excess := len(r.runs) - maxHookRuns
	r.runs = slices.DeleteFunc(r.runs, func(run *HookRun) bool {
		current := r.round != nil && run.Round == r.round.Sequence && r.lastRunLocked(run.Identity, run.Phase) == run
		if excess <= 0 || run.State == runRunning || current || !run.Gone && run.UID != "" {
			return false
		}
		excess--
		return true
	})
	if excess = len(r.runs) - maxHookRecords; excess > 0 {
		r.runs = slices.Delete(r.runs, 0, excess)
	}
}

// lastRunLocked is the newest run of a hook in a phase of the round; nil: none.
func (r *release) lastRunLocked(id manifest.Identity, phase string) *HookRun {
	for _, run := range slices.Backward(r.runs) {
		if run.Identity == id && run.Phase == phase && r.round != nil && run.Round == r.round.Sequence {
			return run
		}
	}
	return nil
}

// endRun says how a run ended.
func (r *release) endRun(run *HookRun, state, message string) {
	now := r.runner.moments.told(r.now())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endRunLocked(run, state, message, now)
}

func (r *release) endRunLocked(run *HookRun, state, message string, now time.Time) {
	run.State, run.FinishedAt, run.Message = state, &now, clip(message, maxMessage)
	r.dirty = true
}

// hookRunsLocked are the newest runs, newest first, as a report has them.
func (r *release) hookRunsLocked() []tunnel.HookRun {
	if len(r.runs) == 0 {
		return nil
	}
	out := make([]tunnel.HookRun, 0, min(len(r.runs), maxHookRuns))
	for _, run := range slices.Backward(r.runs) {
		if len(out) == maxHookRuns {
			break
		}
		out = append(out, tunnel.HookRun{
			Hook: run.Hook, Phase: run.Phase, Run: run.Run, State: run.State,
			Kind: run.Kind, Namespace: run.Namespace, Name: run.Name,
			StartedAt: run.StartedAt, FinishedAt: run.FinishedAt, Message: run.Message,
		})
	}
	return out
}

// localTime turns a time by the hub's clock into one of this run.
func (r *release) localTime(t time.Time) time.Time {
	now := r.now()
	return now.Add(t.Sub(r.runner.moments.told(now)))
}
