// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/pkg/tunnel"
)

// lastRun is the newest run of a hook of a report.
func lastRun(r tunnel.Report, hook string) tunnel.HookRun {
	for _, run := range r.Hooks {
		if run.Hook == hook {
			return run
		}
	}
	return tunnel.HookRun{}
}

func action(what string, run tunnel.HookRun) tunnel.HookAction {
	return tunnel.HookAction{Hook: run.Hook, Run: run.Run, Action: what}
}

func TestPeopleAbortRetryAndSkipRunsOfHooks(t *testing.T) {
	inModes(t, testPeopleAbortRetryAndSkipRunsOfHooks)
}

func testPeopleAbortRetryAndSkipRunsOfHooks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("actions")
	render := configMap(ns, "main", "k", "v") + idle("ask", hookOf("PreSync", "hook-name", "question"))
	o := b.accept(b.order("actions", ns, render, withHooks, seconds(300)))
	b.appears(jobs, ns, "ask")
	r := b.report(o.Release.UID, "running", func(r tunnel.Report) bool { return lastRun(r, "question").State == "Running" })
	first := lastRun(r, "question")

	// The hub sends what people ask for with a newer order of the same render.
	b.accept(b.order("actions", ns, render, withHooks, seconds(300), acting(action("abort", first))))
	r = b.report(o.Release.UID, "aborted", failedBy("PreSync hook question (batch/Job actions/ask) was ended"))
	if run := lastRun(r, "question"); run.State != "Aborted" || run.Run != first.Run {
		t.Errorf("the run is %+v", run)
	}
	b.gone(jobs, ns, "ask")
	// It stays so, over a restart and an order that says nothing new of it.
	b.restart()
	o = b.accept(b.order("actions", ns, render, withHooks, seconds(300), acting(action("abort", first))))
	r = b.report(o.Release.UID, "still aborted", func(r tunnel.Report) bool { return r.Sequence == o.Sequence && failedBy("was ended")(r) })
	if len(r.Hooks) != 1 {
		t.Errorf("there are %d runs", len(r.Hooks))
	}

	b.accept(b.order("actions", ns, render, withHooks, seconds(300), acting(action("abort", first), action("retry", first))))
	b.appears(jobs, ns, "ask")
	r = b.report(o.Release.UID, "running again", func(r tunnel.Report) bool {
		run := lastRun(r, "question")
		return run.State == "Running" && run.Run != first.Run
	})
	second := lastRun(r, "question")
	o = b.accept(b.order("actions", ns, render, withHooks, seconds(300), acting(action("skip", second))))
	r = b.applied(o)
	if run := lastRun(r, "question"); run.State != "Skipped" || run.Run != second.Run {
		t.Errorf("the run is %+v", run)
	}
	b.get(configmaps, ns, "main")
	b.gone(jobs, ns, "ask")
}

func TestANewerRenderEndsAHookThatHangsAndAPolicyDoesNot(t *testing.T) {
	inModes(t, testANewerRenderEndsAHookThatHangsAndAPolicyDoesNot)
}

func testANewerRenderEndsAHookThatHangsAndAPolicyDoesNot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("newer")
	render := configMap(ns, "main", "k", "v1") + idle("hangs", hookOf("PreSync"))
	o := b.accept(b.order("newer", ns, render, withHooks, seconds(300)))
	uid := b.appears(jobs, ns, "hangs").GetUID()
	b.restart() // in the middle of it
	same := b.accept(b.order("newer", ns, render, withHooks, seconds(301)))
	r := b.report(o.Release.UID, "still waiting", func(r tunnel.Report) bool {
		return r.Sequence == same.Sequence && strings.Contains(r.Applied.Message, "batch/Job newer/hangs")
	})
	if len(r.Hooks) != 1 || b.get(jobs, ns, "hangs").GetUID() != uid {
		t.Errorf("it did not go on with the run that there was: %+v", r.Hooks)
	}
	_, r = b.apply("newer", ns, configMap(ns, "main", "k", "v2")+job("other", hookOf("PreSync")), withHooks)
	b.wantRuns(r, "PreSync Job/newer/hangs Aborted", "PreSync Job/newer/other Succeeded")
	b.gone(jobs, ns, "hangs")
}

func TestAHookThatFailsAfterTheSyncLeavesAllAppliedAndIsTriedAgain(t *testing.T) {
	inModes(t, testAHookThatFailsAfterTheSyncLeavesAllAppliedAndIsTriedAgain)
}

func testAHookThatFailsAfterTheSyncLeavesAllAppliedAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("after")
	o := b.accept(b.order("after", ns, configMap(ns, "main", "k", "v")+job("before", hookOf("PreSync"))+
		strings.Replace(idle("verify", hookOf("PostSync")), "spec:\n", "spec:\n  ttlSecondsAfterFinished: 0\n", 1), withHooks))
	b.appears(jobs, ns, "verify")
	b.endJob(ns, "verify", false)
	r := b.report(o.Release.UID, "hook failed", failedBy("PostSync hook batch/Job after/verify failed: BackoffLimitExceeded: by the test; all objects are applied"))
	if r.AppliedRef != o.Objects.Digest || r.InSync.Status != tunnel.True || r.Healthy.Status != tunnel.True {
		t.Errorf("applied ref %q, in sync %+v, healthy %+v", r.AppliedRef, r.InSync, r.Healthy)
	}
	// A Job that goes when it has ended counts as what it was.
	b.gone(jobs, ns, "verify")
	b.appears(jobs, ns, "verify")
	b.endJob(ns, "verify", true)
	r = b.applied(o)
	b.wantRuns(r, "PreSync Job/after/before Succeeded", "PostSync Job/after/verify Failed", "PostSync Job/after/verify Succeeded")
}

func TestAHookThatFailsBeforeARemovalHoldsItUntilSomebodySaysSo(t *testing.T) {
	inModes(t, testAHookThatFailsBeforeARemovalHoldsItUntilSomebodySaysSo)
}

func testAHookThatFailsBeforeARemovalHoldsItUntilSomebodySaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("removal")
	for _, how := range []string{"skipped", "released"} {
		b.apply(how, ns, configMap(ns, how, "k", "v")+idle("backup-"+how, hookOf("PreDelete", "hook-timeout", "60"))+
			hookMap("bye-"+how, hookOf("PostDelete"))+job("last-"+how, hookOf("PostDelete", "hook-delete-policy", "HookSucceeded")), withHooks)
		o := b.accept(b.bare(how, tunnel.VerbRemove))
		b.appears(jobs, ns, "backup-"+how)
		b.endJob(ns, "backup-"+how, false)
		r := b.report(o.Release.UID, "held by its hook", failedBy("PreDelete hook batch/Job removal/backup-"+how+" failed: BackoffLimitExceeded: by the test; nothing was deleted"))
		if run := lastRun(r, "Job/removal/backup-"+how); run.State != "Failed" || run.StartedAt.IsZero() || run.FinishedAt == nil || r.Operation == nil || r.Operation.StartedAt.IsZero() {
			t.Errorf("it is not dated: run %+v, operation %+v", run, r.Operation)
		}
		b.get(configmaps, ns, how)
		b.absent(configmaps, ns, "bye-"+how)
		if how == "released" {
			last := b.accept(b.bare(how, tunnel.VerbRelease))
			b.report(last.Release.UID, "let go", func(r tunnel.Report) bool { return r.Done && r.Sequence == last.Sequence })
			b.live(configmaps, ns, how, "kept, unmarked", func(u *unstructured.Unstructured) bool {
				return u.GetAnnotations()["convoy.kumodo.io/owner"] == ""
			})
			b.absent(configmaps, ns, "bye-"+how)
			continue
		}
		last := b.accept(b.bare(how, tunnel.VerbRemove, acting(action("skip", lastRun(r, "Job/removal/backup-"+how)))))
		r = b.report(last.Release.UID, "removed", func(r tunnel.Report) bool { return r.Done && r.Sequence == last.Sequence })
		b.gone(configmaps, ns, how)
		b.get(configmaps, ns, "bye-"+how) // its policy leaves it
		b.gone(jobs, ns, "last-"+how)
		b.gone(jobs, ns, "backup-"+how)
		if !strings.Contains(r.Applied.Message, "left ConfigMap removal/bye-skipped, which a PostDelete hook made") {
			t.Errorf("applied is %+v", r.Applied)
		}
	}
}

func TestHooksOfASyncThatFailsRunOnceForItsOrder(t *testing.T) {
	inModes(t, testHooksOfASyncThatFailsRunOnceForItsOrder)
}

func testHooksOfASyncThatFailsRunOnceForItsOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("failing")
	render := stuck + waved("late", "2", "v") + hookMap("alarm", hookOf("SyncFailed")) + job("after", hookOf("PostSync"))
	for range 2 {
		o := b.accept(b.order("failing", ns, render, withHooks, seconds(2)))
		r := b.report(o.Release.UID, "failed", func(r tunnel.Report) bool {
			return r.Sequence == o.Sequence && r.Settled && r.Applied.Reason == "DeadlinePassed" && lastRun(r, "ConfigMap/failing/alarm").State == "Succeeded"
		})
		if run := lastRun(r, "ConfigMap/failing/alarm"); run.Phase != "SyncFailed" {
			t.Errorf("the run is %+v", run)
		}
	}
	r := b.report("uid-failing", "settled", func(r tunnel.Report) bool { return r.Settled && len(r.Hooks) == 2 })
	b.wantRuns(r, "SyncFailed ConfigMap/failing/alarm Succeeded", "SyncFailed ConfigMap/failing/alarm Succeeded")
	b.absent(jobs, ns, "after")
	_, r = b.apply("failing", ns, waved("late", "2", "v")+job("after", hookOf("PostSync")), withHooks)
	if run := lastRun(r, "Job/failing/after"); run.State != "Succeeded" {
		t.Errorf("the run is %+v", run)
	}
}

func TestARemovalWhoseReleaseWasMadeAnewRunsNoHooks(t *testing.T) {
	inModes(t, testARemovalWhoseReleaseWasMadeAnewRunsNoHooks)
}

func testARemovalWhoseReleaseWasMadeAnewRunsNoHooks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("hooks-anew")
	render := configMap(ns, "main", "k", "v") + job("farewell", hookOf("PreDelete,PostDelete"))
	b.apply("hooks-anew", ns, render, withHooks)
	main := b.get(configmaps, ns, "main").GetUID()
	gone := b.bare("hooks-anew", tunnel.VerbRemove)
	next := b.order("hooks-anew", ns, render, withHooks, func(o *tunnel.Order) { o.Release.UID = "uid-hooks-anew-2" })
	b.accept(gone)
	b.accept(next)
	b.applied(next)
	r := b.report(gone.Release.UID, "removed", func(r tunnel.Report) bool { return r.Done })
	b.wantRuns(r)
	b.absent(jobs, ns, "farewell")
	if uid := b.get(configmaps, ns, "main").GetUID(); uid != main {
		t.Error("what lives on was made anew")
	}
}
