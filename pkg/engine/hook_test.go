// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestWhatAnnotationsSayOfAHook(t *testing.T) {
	t.Parallel()
	type said struct {
		Phases                   string
		Before, Success, Failure bool
		Keep                     bool
		Timeout                  time.Duration
	}
	for name, c := range map[string]struct {
		kind        string
		annotations map[string]string
		want        *said // nil: no hook
		err         string
	}{
		"nothing":                            {"Job", nil, nil, ""},
		"a phase":                            {"Job", map[string]string{v1alpha1.AnnotationHook: "PreSync"}, &said{Phases: "PreSync", Before: true}, ""},
		"several phases, and room":           {"Job", map[string]string{v1alpha1.AnnotationHook: " PostSync , PreDelete,"}, &said{Phases: "PostSync PreDelete", Before: true}, ""},
		"a policy in place of the usual one": {"Job", map[string]string{v1alpha1.AnnotationHook: "PreSync", v1alpha1.AnnotationHookDeletePolicy: "HookSucceeded,HookFailed"}, &said{Phases: "PreSync", Success: true, Failure: true}, ""},
		"a timeout":                          {"Job", map[string]string{v1alpha1.AnnotationHook: "PreSync", v1alpha1.AnnotationHookTimeout: "90"}, &said{Phases: "PreSync", Before: true, Timeout: 90 * time.Second}, ""},
		"to be kept, as Helm says it":        {"Job", map[string]string{v1alpha1.AnnotationHook: "PreSync", annotationKeep: keepValue}, &said{Phases: "PreSync", Before: true, Keep: true}, ""},
		"to be kept, as we say it":           {"Job", map[string]string{v1alpha1.AnnotationHook: "PreSync", v1alpha1.AnnotationPrune: "false"}, &said{Phases: "PreSync", Before: true, Keep: true}, ""},
		"data that would go":                 {kindClaim, map[string]string{v1alpha1.AnnotationHook: "PreSync"}, &said{Phases: "PreSync", Before: true, Keep: true}, ""},
		"others' objects that would go":      {kindNamespace, map[string]string{v1alpha1.AnnotationHook: "PreSync"}, &said{Phases: "PreSync", Before: true, Keep: true}, ""},
		"a phase that there is not":          {"Job", map[string]string{v1alpha1.AnnotationHook: "PreSync,MidSync"}, nil, "MidSync"},
		"an empty list":                      {"Job", map[string]string{v1alpha1.AnnotationHook: " , "}, nil, "names no phase"},
		"a policy that there is not":         {"Job", map[string]string{v1alpha1.AnnotationHook: "PreSync", v1alpha1.AnnotationHookDeletePolicy: "Never"}, nil, "Never"},
		"a timeout that is no number":        {"Job", map[string]string{v1alpha1.AnnotationHook: "PreSync", v1alpha1.AnnotationHookTimeout: "5m"}, nil, "no number of seconds"},
		"a timeout of nothing":               {"Job", map[string]string{v1alpha1.AnnotationHook: "PreSync", v1alpha1.AnnotationHookTimeout: "0"}, nil, "no number of seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			it := item{id: manifest.Identity{Kind: c.kind, Namespace: "ns", Name: "n"}}
			if c.kind == "Job" {
				it.id.Group = "batch"
			}
			h, err := newHook(it, c.annotations)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want one that says %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got *said
			if h != nil {
				var phases []string
				for phase := range h.phases {
					phases = append(phases, phase)
				}
				slices.Sort(phases)
				got = &said{strings.Join(phases, " "), h.before, h.onSuccess, h.onFailure, h.keep, h.timeout}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPhasesOfAnInstallationAndOfAnUpgradeAreTheOnesAroundASync(t *testing.T) {
	t.Parallel()
	h := &hook{phases: map[string]bool{phasePreInstall: true, phasePostUpgrade: true, phaseSyncFailed: true}}
	for phase, want := range map[string][2]bool{ // on an installation, on an upgrade
		phasePreSync: {true, false}, phasePostSync: {false, true}, phaseSyncFailed: {true, true},
		phasePreDelete: {false, false}, phasePostDelete: {false, false},
	} {
		if got := [2]bool{h.runsIn(phase, false), h.runsIn(phase, true)}; got != want {
			t.Errorf("%s: %v, want %v", phase, got, want)
		}
	}
}

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

func TestHooksOfOneKindEndAndOthersAreHealthy(t *testing.T) {
	t.Parallel()
	rn, _ := unstarted(t, time.Now())
	r := rn.newRelease("r")
	condition := func(kind string) map[string]any {
		return map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": kind, "status": "True", "reason": "Why", "message": "how"}}}}
	}
	job, pod, other := manifest.Identity{Group: "batch", Kind: "Job"}, manifest.Identity{Kind: "Pod"}, manifest.Identity{Kind: "ConfigMap"}
	for name, c := range map[string]struct {
		id   manifest.Identity
		live map[string]any
		want outcome
		why  string
	}{
		"a Job that is new":           {job, map[string]any{}, outcomeOpen, "has not ended, 0 pods active"},
		"a Job that works":            {job, map[string]any{"status": map[string]any{"active": int64(2)}}, outcomeOpen, "has not ended, 2 pods active"},
		"a Job that is complete":      {job, condition("Complete"), outcomeDone, ""},
		"a Job about to be complete":  {job, condition("SuccessCriteriaMet"), outcomeOpen, "has not ended, 0 pods active"},
		"a Job that failed":           {job, condition("Failed"), outcomeFailed, "Why: how"},
		"a Job that waits":            {job, condition("Suspended"), outcomeOpen, "has not ended, 0 pods active"},
		"a Job of an odd shape":       {job, map[string]any{"status": map[string]any{"conditions": "none"}}, outcomeOpen, "its conditions cannot be read"},
		"a Pod that runs":             {pod, map[string]any{"status": map[string]any{"phase": "Running"}}, outcomeOpen, "has not ended, its phase is Running"},
		"a Pod that has ended well":   {pod, map[string]any{"status": map[string]any{"phase": "Succeeded"}}, outcomeDone, ""},
		"a Pod that has ended badly":  {pod, map[string]any{"status": map[string]any{"phase": "Failed", "reason": "Evicted"}}, outcomeFailed, "Evicted"},
		"a Pod that is new":           {pod, map[string]any{}, outcomeOpen, "has not begun"},
		"an object without a status":  {other, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}, outcomeDone, ""},
		"an object on its way out":    {other, map[string]any{"metadata": map[string]any{"deletionTimestamp": "2026-01-02T03:04:05Z"}}, outcomeOpen, "is being deleted"},
		"a Pod whose phase is no one": {pod, map[string]any{"status": map[string]any{"phase": 3}}, outcomeOpen, "has not ended, its phase is "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, why := r.outcomeOf(c.id, c.live)
			if got != c.want || why != c.why {
				t.Errorf("%d %q, want %d %q", got, why, c.want, c.why)
			}
		})
	}
}

func TestHooksDoNotRaiseTheBudgetOfDeletions(t *testing.T) {
	t.Parallel()
	r, _ := hooking(t)
	r.applied = &Render{Objects: tunnel.Layer{Digest: "sha256:01"}, Hooks: true, Items: 12}
	if total := r.lastTotal(t.Context()); total != 12 {
		t.Errorf("the share is taken of %d objects", total)
	}
}

func TestMessagesOfHooksNameHookAndObject(t *testing.T) {
	t.Parallel()
	id := manifest.Identity{Group: "batch", Kind: "Job", Namespace: "ns", Name: "prepare"}
	for want, err := range map[string]error{
		"PreSync hook batch/Job ns/prepare failed: Why; nothing of the render was applied":          newHookError(&HookRun{Identity: id, Hook: hookName(id), Phase: phasePreSync, State: runFailed, Message: "Why"}),
		"PreDelete hook backup (batch/Job ns/prepare) was ended: aborted: Why; nothing was deleted": newHookError(&HookRun{Identity: id, Hook: "backup", Phase: phasePreDelete, State: runAborted, Message: "aborted: Why"}),
	} {
		if err.Error() != want {
			t.Errorf("%s\nwant %s", err, want)
		}
	}
	if isAborted(fmt.Errorf("x: %w", newHookError(&HookRun{State: runFailed}))) || !isAborted(fmt.Errorf("x: %w", newHookError(&HookRun{State: runAborted}))) {
		t.Error("what was aborted is not told from what failed")
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

func TestOnlyWhatHooksOfTheReleaseMadeMayBeDeletedForThem(t *testing.T) {
	t.Parallel()
	const none, ours, other = "", "ours", "hub/other"
	permit := func(o *tunnel.Order) { o.Policy.ForceConflicts = true }
	for name, c := range map[string]struct {
		kind      string
		keep      bool
		policy    func(*tunnel.Order)
		known     *HookRun // its UID, or Onto, or Former is that of the object
		inventory *object
		owner     string
		byHook    bool
		may, del  bool
	}{
		"nobody's Secret":                                 {kind: "Secret", owner: none},
		"nobody's Deployment":                             {kind: "Deployment", owner: none},
		"nobody's Job":                                    {kind: "Job", owner: none},
		"nobody's, for a hook that is kept":               {kind: "Secret", keep: true, owner: none, may: true},
		"nobody's, where fields are taken":                {kind: "Secret", policy: permit, owner: none, may: true},
		"nobody's Job, where fields are taken":            {kind: "Job", policy: permit, owner: none},
		"one that fields were taken of":                   {kind: "Secret", known: &HookRun{UID: "uid", Onto: "uid"}, owner: ours, byHook: true, may: true},
		"the same, and fields are taken again":            {kind: "Secret", policy: permit, known: &HookRun{UID: "uid", Onto: "uid", Created: true}, owner: ours, byHook: true, may: true},
		"one that a hook made":                            {kind: "Secret", known: &HookRun{UID: "uid", Created: true}, owner: ours, byHook: true, may: true, del: true},
		"one that a hook made and whose mark is off":      {kind: "Secret", known: &HookRun{UID: "uid", Created: true}, owner: none, may: true},
		"one with our marks, of which nothing is known":   {kind: "Secret", owner: ours, byHook: true, may: true},
		"one under the name of one that a hook made":      {kind: "Secret", known: &HookRun{UID: "before", Created: true}, owner: none},
		"a Job with our marks, of which nothing is known": {kind: "Job", owner: ours, byHook: true, may: true, del: true},
		"one that the Release made before it was a hook":  {kind: "Secret", known: &HookRun{Former: "uid"}, owner: ours, may: true, del: true},
		"one that the Release took before it was a hook":  {kind: "Secret", known: &HookRun{Onto: "uid"}, owner: ours, may: true},
		"one of the inventory that the Release made":      {kind: "Secret", inventory: &object{uid: "uid", created: true}, owner: ours, may: true, del: true},
		"one of the inventory that the Release took":      {kind: "Secret", inventory: &object{uid: "uid"}, owner: ours, may: true},
		"a Job of the inventory that the Release took":    {kind: "Job", inventory: &object{uid: "uid"}, owner: ours},
		"another Release's":                               {kind: "Secret", policy: permit, keep: true, owner: other, byHook: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, p := hooking(t)
			h := &hook{item: item{id: manifest.Identity{Kind: c.kind, Namespace: "ns", Name: "n"}}, before: true, keep: c.keep}
			if c.kind == "Job" {
				h.id.Group = "batch"
			}
			order := applyOrder(7, "sha256:01")
			r.beginRound(order, p, false)
			if c.policy != nil {
				c.policy(&order)
			}
			if c.known != nil {
				c.known.Identity = h.id
				r.runs = append(r.runs, c.known)
			}
			if c.inventory != nil {
				r.objects[h.id] = c.inventory
			}
			annotations := map[string]string{}
			if c.owner == ours {
				c.owner = r.marks.owner
			}
			if c.owner != none {
				annotations[v1alpha1.AnnotationOwner] = c.owner
			}
			if c.byHook {
				annotations[v1alpha1.AnnotationHookRun] = "6-1"
			}
			del, err := r.claim(order, h, "uid", annotations)
			if err == nil != c.may || del != c.del {
				t.Errorf("may be changed: %v (%v), want %v; may be deleted: %v, want %v", err == nil, err, c.may, del, c.del)
			}
			if c.known != nil && c.known.UID == "uid" && c.known.mayGo() != c.known.Created && c.known.Onto != "uid" {
				t.Error("its run says another thing")
			}
		})
	}
}

func TestARunThatWasAppliedOntoAnotherObjectIsNeverDoomed(t *testing.T) {
	t.Parallel()
	r, p := hooking(t)
	order := applyOrder(7, "sha256:01")
	r.beginRound(order, p, false)
	h := &hook{item: item{id: manifest.Identity{Kind: "Secret", Namespace: "ns", Name: "n"}}, onSuccess: true, onFailure: true}
	for name, c := range map[string]struct {
		run  HookRun
		want bool
	}{
		"made by the hook":                   {HookRun{UID: "a", Created: true}, true},
		"made by the hook after another one": {HookRun{UID: "a", Onto: "b", Created: true}, true},
		"there before":                       {HookRun{UID: "a", Onto: "a"}, false},
		"of a record that does not say it":   {HookRun{UID: "a"}, false},
	} {
		run := r.newRunLocked(h, phasePreSync, order, time.Minute)
		run.UID, run.Onto, run.Created = c.run.UID, c.run.Onto, c.run.Created
		r.stopRunLocked(run, runFailed, "late")
		if run.Doomed != c.want || run.standsBefore("a") == c.want {
			t.Errorf("%s: doomed %v, stood before %v", name, run.Doomed, run.standsBefore("a"))
		}
	}
	// Killed between the apply and the answer: the name of the run is on it.
	run := &HookRun{Onto: "a"}
	if !run.standsBefore("a") || run.standsBefore("b") {
		t.Error("what the run was applied to is not told from what it made")
	}
}
