// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestAnUndisturbedRolloutCostsTwoStatusWritesAndOneInventory(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		equal(t, "state", "False Progressing", ready(t, h, key))
		for i := range 20 {
			change := moving
			answer := h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", int64(i+1), change, withInventory)})
			equal(t, "taken", map[string]int64{"uid-web": int64(i + 1)}, answer.Taken)
			pass(100 * time.Millisecond)
		}
		answer := h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 30)})
		equal(t, "taken", map[string]int64{"uid-web": 30}, answer.Taken)
		equal(t, "writes", []string{"Release web", "Inventory web", "Release web"}, h.counted())
		equal(t, "state", "True Ready", ready(t, h, key))
		r, _ := h.Release(key)
		equal(t, "history", 1, len(r.Status.History))
		equal(t, "events", []string{"web Progressing warning=false", "web Ready warning=false"}, h.events)

		// The same again, and an idle hour, cost nothing.
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 30), report("web", 31), report("web", 12)})
		if err := h.reporter.Release(t.Context(), key, "uid-web", Outcome{Generation: 1, Rendered: rendered}); err != nil {
			t.Error(err)
		}
		h.reporter.Connected(edge)
		pass(time.Hour)
		equal(t, "writes when idle", []string(nil), h.counted())
		equal(t, "questions when idle", []types.UID(nil), h.questions())
	})
}

func TestAnInventoryIsEmptiedWhenTheLastObjectWasPruned(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1, withInventory)})
		pass(time.Minute)
		before, ok := lookup[*corev1alpha1.ReleaseInventory](h, "Inventory", key)
		if !ok || len(before.Entries) != 1 {
			t.Fatalf("inventory %+v", before)
		}
		const empty = "sha256:empty"
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 2, func(r *tunnel.Report) {
			r.Sequence, r.AppliedRef, r.Inventory = before.Sequence+1, empty, []tunnel.InventoryEntry{}
		})})
		pass(time.Minute)
		after, _ := lookup[*corev1alpha1.ReleaseInventory](h, "Inventory", key)
		if len(after.Entries) != 0 || after.Sequence != before.Sequence+1 || after.RenderRef != empty {
			t.Errorf("inventory of sequence %d, render %s, entries %v", after.Sequence, after.RenderRef, after.Entries)
		}
	})
}

func TestReportsWithinTheWindowAreOneWrite(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		h.ordered(t, "web")
		h.counted()
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				degraded := func(r *tunnel.Report) {
					r.Healthy = tunnel.Finding{Status: tunnel.False, Reason: "Degraded", Message: fmt.Sprint(i)}
				}
				h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", int64(i+1), degraded)})
			})
			pass(20 * time.Millisecond)
		}
		all.Wait()
		equal(t, "writes", []string{"Release web"}, h.counted())
	})
}

func TestProgressIsHeldUntilItHasBlockedForThirtySeconds(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.counted()
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1, blocked)})
		pass(29 * time.Second)
		equal(t, "writes after 29 s", []string(nil), h.counted())
		pass(2 * time.Second)
		equal(t, "writes after 31 s", []string{"Release web"}, h.counted())
		equal(t, "state", "False Blocked", ready(t, h, key))
		pass(10 * time.Minute)
		equal(t, "writes when nothing changes", []string(nil), h.counted())
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 2)})
		equal(t, "writes when settled", []string{"Release web"}, h.counted())
	})
}

func TestTroubleAfterARolloutIsToldWithinSecondsAndRepairsWithinThemCostNoWrite(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		healed := func(r *tunnel.Report) {
			r.Operation = &tunnel.Operation{Type: corev1alpha1.OperationSync, Phase: corev1alpha1.PhaseSucceeded}
		}
		drifted := func(r *tunnel.Report) {
			healed(r)
			r.Settled = false
			r.InSync = tunnel.Finding{Status: tunnel.False, Reason: "Drifted", Message: "ConfigMap team/a"}
		}
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1, healed)})
		h.counted()
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 2, drifted)})
		pass(time.Second)
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 3, healed)})
		pass(time.Minute)
		equal(t, "writes for a quick repair", []string(nil), h.counted())
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 4, drifted)})
		pass(3 * time.Second)
		equal(t, "writes after 3 s", []string{"Release web"}, h.counted())
		equal(t, "state", "False Drifted", ready(t, h, key))
		for i := range 20 {
			more := func(r *tunnel.Report) { r.InSync.Message = fmt.Sprintf("ConfigMap team/%d", i) }
			h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", int64(5+i), drifted, more)})
			pass(time.Second)
		}
		equal(t, "writes while it goes on", []string(nil), h.counted())
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 99, healed)})
		equal(t, "writes when it is over", []string{"Release web"}, h.counted())
	})
}

func TestAFailureIsWrittenBeforeItSettles(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.counted()
		rejected := func(r *tunnel.Report) {
			r.Settled = false
			r.Applied = tunnel.Finding{Status: tunnel.False, Reason: "DryRunFailed", Message: "ConfigMap team/a"}
		}
		for i := range 5 {
			h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", int64(i+1), rejected, func(r *tunnel.Report) { r.Counts.Failed = int32(i) })})
		}
		equal(t, "state", "False DryRunFailed", ready(t, h, key))
		equal(t, "writes of the same failure", []string{"Release web"}, h.counted())
	})
}

func TestARefusedOrderIsNamed(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1, func(r *tunnel.Report) {
			r.Sequence, r.Settled = 0, false
			r.Refused, r.RefusedSequence = &tunnel.Finding{Status: tunnel.False, Reason: "OrderRefused", Message: "signature"}, 10
		})})
		equal(t, "state", "False OrderRefused", ready(t, h, key))
	})
}

func TestReportsAboutOthersAreRefused(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		h.ordered(t, "web")
		h.counted()
		h.add("Cluster", &corev1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "other", UID: "c2"}})
		answer := h.reporter.Observe(t.Context(), tunnel.ClusterID{Namespace: "team", Name: "other", UID: "c2"}, []tunnel.Report{report("web", 1)})
		equal(t, "refused", map[string]string{"uid-web": "this Release is not of this cluster"}, answer.Refused)
		answer = h.reporter.Observe(t.Context(), tunnel.ClusterID{Namespace: "team", Name: "edge", UID: "c0"}, []tunnel.Report{report("web", 1)})
		equal(t, "refused", map[string]string{"uid-web": "this cluster was deleted on the hub"}, answer.Refused)
		equal(t, "taken", map[string]int64{}, answer.Taken)
		pass(time.Minute)
		equal(t, "writes", []string(nil), h.counted())
	})
}

func TestAReportAboutAReleaseThatIsGoneIsTaken(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		answer := h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("gone", 7), report("removed", 3, func(r *tunnel.Report) { r.Done = true })})
		equal(t, "taken", map[string]int64{"uid-gone": 7, "uid-removed": 3}, answer.Taken)
		equal(t, "done", []string{"c1 uid-removed 10"}, h.done)

		// Deleted between report and write.
		h.ordered(t, "web")
		go func() {
			pass(100 * time.Millisecond)
			h.remove("Release", "web")
		}()
		answer = h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1)})
		equal(t, "taken", map[string]int64{"uid-web": 1}, answer.Taken)
	})
}

func TestWhatCouldNotBeWrittenIsNotTaken(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.mu.Lock()
		h.failing = errors.New("etcd is away")
		h.mu.Unlock()
		answer := h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1)})
		equal(t, "taken", map[string]int64{}, answer.Taken)
		h.mu.Lock()
		h.failing = nil
		h.mu.Unlock()
		pass(2 * time.Second)
		equal(t, "state after a retry of our own", "True Ready", ready(t, h, key))
		answer = h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1)})
		equal(t, "taken", map[string]int64{"uid-web": 1}, answer.Taken)
	})
}

func TestCountersStartOverWithANewSession(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 900)})
		h.reporter.Connected(edge)
		drifted := func(r *tunnel.Report) { r.InSync = tunnel.Finding{Status: tunnel.False, Reason: "Drifted"} }
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1, drifted)})
		equal(t, "state", "False Drifted", ready(t, h, key))
	})
}

func TestALostClusterGivesUnknownAtAPaceAndTheReturnAsks(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		const count = 200
		for i := range count {
			h.ordered(t, fmt.Sprint("r", i))
		}
		for i := range count {
			h.reporter.Observe(t.Context(), edge, []tunnel.Report{report(fmt.Sprint("r", i), 1)})
		}
		h.counted()
		lose := func() {
			old, _ := h.Cluster(keyOf(edge))
			if err := h.reporter.Cluster(t.Context(), keyOf(edge), "c1", func(s *corev1alpha1.ClusterStatus) error { s.Reachable = false; return nil }); err != nil {
				t.Fatal(err)
			}
			next, _ := h.Cluster(keyOf(edge))
			h.reporter.ClusterChanged(old, next)
		}
		lose()
		pass(time.Second)
		if got := len(h.counted()); got < 45 || got > 60 {
			t.Errorf("%d writes in the first second, want about 50", got)
		}
		// The session is back: the sweep ends, and those swept are asked for.
		if err := h.reporter.Cluster(t.Context(), keyOf(edge), "c1", func(s *corev1alpha1.ClusterStatus) error { s.Reachable = true; return nil }); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		h.counted()
		pass(time.Minute)
		equal(t, "writes after the return", []string(nil), h.counted())
		unknown := 0
		for _, r := range h.releases() {
			if ready(t, h, types.NamespacedName{Namespace: "team", Name: r.Name}) == "Unknown Disconnected" {
				unknown++
				answer := report(r.Name, 1)
				h.mu.Lock()
				h.answers[r.UID] = &answer
				h.mu.Unlock()
			}
		}
		h.reporter.Connected(edge)
		pass(time.Second)
		equal(t, "asked", unknown, len(h.questions()))
		for _, r := range h.releases() {
			equal(t, "state of "+r.Name, "True Ready", ready(t, h, types.NamespacedName{Namespace: "team", Name: r.Name}))
		}
	})
}

func TestADeletionNamesWhatBlocksIt(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		r, _ := h.Release(key)
		deleted := r.DeepCopy()
		now := metav1.Now()
		deleted.DeletionTimestamp = &now
		h.add("Release", deleted)
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 4, func(r *tunnel.Report) {
			r.Settled = false
			r.Applied = tunnel.Finding{Status: tunnel.False, Reason: "PruneFailed", Message: "ConfigMap team/a has finalizer x"}
		})})
		r, _ = h.Release(key)
		equal(t, "state", "the agent carries out the last order: ConfigMap team/a has finalizer x", r.Status.Conditions[0].Message)
		answer := h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 5, func(r *tunnel.Report) { r.Done = true })})
		equal(t, "taken", map[string]int64{"uid-web": 5}, answer.Taken)
		equal(t, "done", []string{"c1 uid-web 10"}, h.done)
	})
}

func TestADeletionIsToldFromTheFirstWriteOnAndItsLastOrderIsTheHubsOwn(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 3)})
		equal(t, "before", "True Ready", ready(t, h, key))
		r, _ := h.Release(key)
		deleted := r.DeepCopy()
		now := metav1.Now()
		deleted.DeletionTimestamp = &now
		h.add("Release", deleted)
		h.mu.Lock()
		h.last = map[types.UID]int64{"uid-web": 11}
		h.mu.Unlock()
		// Whatever is written first, it is not ready any more.
		if err := h.reporter.Release(t.Context(), key, deleted.UID, Outcome{Generation: 1}); err != nil {
			t.Fatal(err)
		}
		equal(t, "at first", "False Deleting", ready(t, h, key))
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 4, func(r *tunnel.Report) {
			r.Sequence = 11
			r.Applied = tunnel.Finding{Status: tunnel.False, Reason: "HookFailed", Message: "the hook farewell failed"}
		})})
		r, _ = h.Release(key)
		applied := meta.FindStatusCondition(r.Status.Conditions, "Applied")
		equal(t, "applied", "False HookFailed the hook farewell failed", string(applied.Status)+" "+applied.Reason+" "+applied.Message)
		equal(t, "meanwhile", "False Deleting", ready(t, h, key))
		// One that is newer than all that the hub has is still told.
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 5, func(r *tunnel.Report) { r.Sequence = 12 })})
		r, _ = h.Release(key)
		equal(t, "ahead", "HubBehind", meta.FindStatusCondition(r.Status.Conditions, "Applied").Reason)
	})
}

func TestASourceIsWrittenOnlyWhenThereIsNews(t *testing.T) {
	for _, object := range []sourcev1alpha1.Source{
		&sourcev1alpha1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "apps", UID: "g1", Generation: 1}},
		&sourcev1alpha1.OCIRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "apps", UID: "g1", Generation: 1}},
	} {
		t.Run(object.SourceKind(), func(t *testing.T) {
			inside(t, func(t *testing.T, h *hub) {
				kind := object.SourceKind()
				h.add(kind, object)
				check := func(o SourceOutcome) {
					if err := h.reporter.Source(t.Context(), object, o); err != nil {
						t.Error(err)
					}
				}
				good := SourceOutcome{Generation: 1, Revision: "main@sha1:1", Ready: Finding{"True", "Reachable", ""}}
				check(good)
				check(good)
				equal(t, "writes", []string{kind + " apps"}, h.counted())
				check(SourceOutcome{Generation: 1, Ready: Finding{"False", "Unreachable", "no route"}})
				equal(t, "writes", []string{kind + " apps"}, h.counted())
				found, _ := h.Source(kind, types.NamespacedName{Namespace: "team", Name: "apps"})
				equal(t, "the revision that was last seen stays", "main@sha1:1", found.SourceStatus().Revision)
				object.SetUID("another")
				if err := h.reporter.Source(t.Context(), object, good); !errors.Is(err, ErrGone) {
					t.Errorf("a write about another object gave %v, want ErrGone", err)
				}
			})
		})
	}
}

func TestNothingThatAnAgentSendsMakesAStatusThatIsRefused(t *testing.T) {
	long := string(make([]byte, 100_000))
	r := report("web", 1, func(r *tunnel.Report) {
		r.Applied = tunnel.Finding{Status: "maybe", Reason: long, Message: long}
		r.InSync = tunnel.Finding{Status: tunnel.True, Reason: "no reason", Message: "\xff\xfe"}
		for range 200 {
			r.Exceptions = append(r.Exceptions, tunnel.Exception{Kind: long, Name: long, Reason: "x y", Message: long})
		}
		r.Operation = &tunnel.Operation{Type: long, Phase: "", Message: long}
	})
	release := &corev1alpha1.Release{Status: corev1alpha1.ReleaseStatus{Sequence: 10}}
	foldReport(release, &r, 0, time.Now())
	body, err := json.Marshal(release)
	if err != nil {
		t.Fatal(err)
	}
	if len(body) > 128<<10 {
		t.Errorf("the status has %d bytes", len(body))
	}
	equal(t, "exceptions", 64, len(release.Status.Exceptions))
	equal(t, "more", int32(136), release.Status.MoreExceptions)
	for _, c := range release.Status.Conditions {
		if c.Reason == "" || len(c.Message) > 32768 {
			t.Errorf("condition %s has reason %q and a message of %d bytes", c.Type, c.Reason, len(c.Message))
		}
	}
}
