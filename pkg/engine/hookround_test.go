// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// hooking is a Release and the plan of a render with one hook in each phase.
func hooking(t *testing.T) (*release, *plan) {
	t.Helper()
	rn, _ := unstarted(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	p := &plan{render: &Render{Objects: tunnel.Layer{Digest: "sha256:01"}}}
	for _, phase := range []string{phasePreSync, phasePostSync, phasePreDelete} {
		p.hooks = append(p.hooks, &hook{item: item{id: manifest.Identity{Group: "batch", Kind: "Job", Namespace: "ns", Name: phase}}, phases: map[string]bool{phase: true}})
	}
	return rn.newRelease("r"), p
}

func applyOrder(sequence int64, digest string) tunnel.Order {
	return tunnel.Order{Verb: tunnel.VerbApply, Sequence: sequence, Objects: &tunnel.Layer{Digest: digest}}
}

func TestWhenARoundOfHooksBeginsAndWhichOrdersGoOnWithIt(t *testing.T) {
	t.Parallel()
	applied := func(digest string) *Render { return &Render{Objects: tunnel.Layer{Digest: digest}} }
	for name, c := range map[string]struct {
		applied *Render
		round   *HookRound
		order   func(*tunnel.Order)
		removal bool
		runs    bool
		begins  bool // a round of its own
	}{
		"the first render":                                  {nil, nil, nil, false, true, true},
		"another render than the one applied":               {applied("sha256:02"), nil, nil, false, true, true},
		"the render that was applied in full":               {applied("sha256:01"), nil, nil, false, false, false},
		"the same, forced":                                  {applied("sha256:01"), nil, func(o *tunnel.Order) { o.Force = true }, false, true, true},
		"the same, forced, and done for this order":         {applied("sha256:01"), &HookRound{Sequence: 7, Render: "sha256:01", Ended: true}, func(o *tunnel.Order) { o.Force = true }, false, false, false},
		"the same, forced once more":                        {applied("sha256:01"), &HookRound{Sequence: 6, Render: "sha256:01", Ended: true}, func(o *tunnel.Order) { o.Force = true }, false, true, true},
		"the same, and hooks that follow have not run":      {applied("sha256:01"), &HookRound{Sequence: 6, Render: "sha256:01", Half: true}, nil, false, true, false},
		"an order signed anew in the middle of a round":     {nil, &HookRound{Sequence: 6, Render: "sha256:01"}, nil, false, true, false},
		"another render in the middle of a round":           {nil, &HookRound{Sequence: 6, Render: "sha256:02"}, nil, false, true, true},
		"back to what was applied in the middle of a round": {applied("sha256:01"), &HookRound{Sequence: 6, Render: "sha256:02"}, nil, false, false, false},
		"a removal":                           {applied("sha256:01"), &HookRound{Sequence: 6, Render: "sha256:01", Ended: true}, nil, true, true, true},
		"a removal that is ordered once more": {applied("sha256:01"), &HookRound{Sequence: 6, Render: "sha256:01", Removal: true}, nil, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, p := hooking(t)
			r.applied, r.round = c.applied, c.round
			order := applyOrder(7, "sha256:01")
			if c.order != nil {
				c.order(&order)
			}
			runs := r.beginRound(order, p, c.removal)
			if runs != c.runs {
				t.Errorf("hooks run: %v, want %v", runs, c.runs)
			}
			if begins := runs && r.round.Sequence == 7 && r.round != c.round; begins != c.begins {
				t.Errorf("a round of its own: %v, want %v", begins, c.begins)
			}
			if runs && c.begins && r.round.Upgrade != (c.applied != nil) {
				t.Errorf("an upgrade: %v", r.round.Upgrade)
			}
		})
	}
}

func TestWhatPeopleAskForHoldsForTheLastRunOfAHook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state, action string
		older         bool // the run that is named is not the last one
		want          string
		doomed        bool
	}{
		"skip one that runs":           {runRunning, "skip", false, runSkipped, true},
		"skip one that failed":         {runFailed, "skip", false, runSkipped, true},
		"skip one that was aborted":    {runAborted, "skip", false, runSkipped, true},
		"skip one that succeeded":      {runDone, "skip", false, runDone, false},
		"abort one that runs":          {runRunning, "abort", false, runAborted, true},
		"abort one that failed":        {runFailed, "abort", false, runAborted, true},
		"abort one that succeeded":     {runDone, "abort", false, runDone, false},
		"retry one that was aborted":   {runAborted, "retry", false, runAborted, false},
		"retry one that succeeded":     {runDone, "retry", false, runDone, false},
		"abort one before the last":    {runFailed, "abort", true, runFailed, false},
		"a word that nobody knows":     {runRunning, "shrug", false, runRunning, false},
		"retry one that runs":          {runRunning, "retry", false, runRunning, false},
		"retry one that failed before": {runFailed, "retry", true, runFailed, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, p := hooking(t)
			order := applyOrder(7, "sha256:01")
			r.beginRound(order, p, false)
			run := r.newRunLocked(p.hooks[0], phasePreSync, order, time.Minute)
			run.State = c.state
			if c.older {
				r.newRunLocked(p.hooks[0], phasePreSync, order, time.Minute).State = runFailed
			}
			order.Sequence, order.Actions = 8, []tunnel.HookAction{{Hook: run.Hook, Run: run.Run, Action: c.action}}
			for range 2 { // an order carries it for as long as it is the newest
				r.beginRound(order, p, false)
			}
			if run.State != c.want || run.Doomed != c.doomed {
				t.Errorf("it is %s, its object goes: %v", run.State, run.Doomed)
			}
		})
	}
}

func TestARoundThatIsLeftStopsWhatItRuns(t *testing.T) {
	t.Parallel()
	r, p := hooking(t)
	order := applyOrder(7, "sha256:01")
	r.beginRound(order, p, false)
	kept := r.newRunLocked(p.hooks[0], phasePreSync, order, time.Minute)
	kept.Keep = true
	runs := r.newRunLocked(p.hooks[1], phasePreSync, order, time.Minute)
	next := &plan{render: &Render{Objects: tunnel.Layer{Digest: "sha256:02"}}, hooks: p.hooks}
	r.beginRound(applyOrder(8, "sha256:02"), next, false)
	if kept.State != runAborted || kept.Doomed || runs.State != runAborted || !runs.Doomed {
		t.Errorf("left are %+v and %+v", kept, runs)
	}
}

func TestRunsThatAreOverAreForgottenButNotWhatTheyLeft(t *testing.T) {
	t.Parallel()
	r, p := hooking(t)
	order := applyOrder(7, "sha256:01")
	r.beginRound(order, p, false)
	first := r.newRunLocked(p.hooks[1], phasePreSync, order, time.Minute)
	first.State, first.UID = runDone, "left"
	for range 2 * maxHookRuns {
		run := r.newRunLocked(p.hooks[0], phasePreSync, order, time.Minute)
		run.State, run.UID, run.Gone = runFailed, "gone", true
	}
	if n := len(r.runs); n > maxHookRuns+1 || r.runs[0] != first {
		t.Errorf("%d runs are kept, the first is %+v", n, r.runs[0])
	}
	told := r.hookRunsLocked()
	if len(told) != maxHookRuns || told[0].Run != r.runs[len(r.runs)-1].Run {
		t.Errorf("%d runs are told, the first is %+v", len(told), told[0])
	}
	for range 2 * maxHookRecords {
		r.newRunLocked(p.hooks[0], phasePreSync, order, time.Minute).State = runRunning
	}
	if n := len(r.runs); n > maxHookRecords {
		t.Errorf("%d runs are kept", n)
	}
}

func TestAHookThatFailedRestsOverARestart(t *testing.T) {
	t.Parallel()
	r, p := hooking(t)
	order := applyOrder(7, "sha256:01")
	r.order = order
	r.beginRound(order, p, false)
	run := r.newRunLocked(p.hooks[0], phasePreSync, order, time.Minute)
	r.endRunLocked(run, runFailed, "broken", r.now())
	again := r.runner.newRelease("again")
	again.order = order
	again.restoreHooksLocked(r.hooksLocked())
	again.restAfterLocked()
	next, err := again.nextRun(order, p.hooks[0], phasePreSync)
	var stopped *hookError
	if next != nil || !errors.As(err, &stopped) || stopped.why != "broken" {
		t.Errorf("next is %+v, %v", next, err)
	}
	clock, ok := r.runner.clock.(*clocktesting.FakeClock)
	if !ok {
		t.Fatal("the clock is a real one")
	}
	clock.Step(retryMin)
	if next, err = again.nextRun(order, p.hooks[0], phasePreSync); err != nil || next == nil || next.Run != "7-2" {
		t.Errorf("next is %+v, %v", next, err)
	}
}

func TestARunThatWasAbortedStaysSoWhenTheHookRunsAgain(t *testing.T) {
	t.Parallel()
	r, p := hooking(t)
	order := applyOrder(7, "sha256:01")
	r.beginRound(order, p, false)
	run := r.newRunLocked(p.hooks[0], phasePreSync, order, time.Minute)
	r.stopRunLocked(run, runAborted, "aborted: it failed")
	if next, err := r.nextRun(order, p.hooks[0], phasePreSync); next != nil || !isAborted(err) {
		t.Errorf("next is %+v, %v", next, err)
	}
	order.Sequence, order.Actions = 8, []tunnel.HookAction{{Hook: run.Hook, Run: run.Run, Action: "retry"}}
	r.beginRound(order, p, false)
	next, err := r.nextRun(order, p.hooks[0], phasePreSync)
	if err != nil || next == nil || next.Run != "8-1" || run.State != runAborted {
		t.Errorf("next is %+v, %v; the first is %s", next, err, run.State)
	}
}

func TestHooksOfAFailedSyncDoNotRunOnceMoreForARunThatIsAborted(t *testing.T) {
	t.Parallel()
	r, p := hooking(t)
	p.hooks = append(p.hooks, &hook{item: item{id: manifest.Identity{Kind: "ConfigMap", Namespace: "ns", Name: "alarm"}}, phases: map[string]bool{phaseSyncFailed: true}})
	order := applyOrder(7, "sha256:01")
	r.beginRound(order, p, false)
	run := r.newRunLocked(p.hooks[0], phasePreSync, order, time.Minute)
	r.stopRunLocked(run, runAborted, "aborted: it runs")
	if r.toldBefore(order, newHookError(run)) {
		t.Error("nothing was told yet")
	}
	r.newRunLocked(p.hooks[3], phaseSyncFailed, order, time.Minute).State = runDone
	if r.toldBefore(order, newHookError(run)) {
		t.Error("one that this order began is not gone on with")
	}
	if order.Sequence = 8; !r.toldBefore(order, newHookError(run)) {
		t.Error("it was told before")
	}
	again := r.newRunLocked(p.hooks[0], phasePreSync, applyOrder(7, "sha256:01"), time.Minute)
	r.stopRunLocked(again, runAborted, "aborted: it failed once more")
	if !r.toldBefore(order, newHookError(again)) {
		t.Error("it was told after the first attempt")
	}
	if run.State = runFailed; r.toldBefore(order, newHookError(run)) {
		t.Error("a failure for another order is news")
	}
}
