// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestRunsOfHooksAndHeldDeletionsStandInTheStatus(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	release := &v1alpha1.Release{Status: v1alpha1.ReleaseStatus{Sequence: 7}}
	report := &tunnel.Report{
		Sequence: 7, Applied: tunnel.Finding{Status: tunnel.False, Reason: "PruneHeld"},
		Held: &tunnel.HeldPrune{Sequence: 7, Count: 30, Total: 40, Digest: "sha256:aa", Since: now},
	}
	for i := range 40 {
		report.Hooks = append(report.Hooks, tunnel.HookRun{
			Hook: "migrate", Phase: "PreSync", Run: fmt.Sprintf("7-%d", i), State: "Failed", Kind: "Job", Namespace: "team", Name: "migrate",
			StartedAt: now, Message: strings.Repeat("x", 1000),
		})
		report.Held.Objects = append(report.Held.Objects, "ConfigMap team/a")
	}
	foldReport(release, report, 0, now)
	status := &release.Status
	at := metav1.NewTime(now)
	want := v1alpha1.HookRun{
		Hook: "migrate", Phase: "PreSync", Run: "7-0", State: "Failed", Kind: "Job", Namespace: "team", ObjectName: "migrate",
		StartedAt: &at, Message: strings.Repeat("x", maxExceptionText-3) + "...",
	}
	if len(status.Hooks) != maxHooks {
		t.Fatalf("%d runs", len(status.Hooks))
	}
	if diff := cmp.Diff(want, status.Hooks[0]); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	if h := status.HeldPrune; h == nil || len(h.Objects) != maxHeldObjects || h.Count != 30 || h.Digest != "sha256:aa" {
		t.Errorf("heldPrune: %+v", h)
	}

	// What a report says nothing of stays; what is held no more is gone.
	foldReport(release, &tunnel.Report{Sequence: 7, Applied: tunnel.Finding{Status: tunnel.True, Reason: "Applied"}}, 0, now)
	if len(status.Hooks) != maxHooks || status.HeldPrune != nil {
		t.Errorf("%d runs, heldPrune %+v", len(status.Hooks), status.HeldPrune)
	}
	// A report about another order does not know what this one holds.
	foldReport(release, report, 0, now)
	foldReport(release, &tunnel.Report{Sequence: 6, Applied: tunnel.Finding{Status: tunnel.True, Reason: "Applied"}}, 0, now)
	if status.HeldPrune == nil {
		t.Error("an older order took it away")
	}
	// The next order has nothing to confirm yet.
	order := func(int64) (v1alpha1.OrderStatus, error) { return v1alpha1.OrderStatus{Sequence: 8}, nil }
	if err := foldOutcome(release, Outcome{Order: order, Confirmation: "c", HookRequest: "h"}, nil, 0, now); err != nil {
		t.Fatal(err)
	}
	if status.HeldPrune != nil || status.LastConfirmation != "c" || status.LastHookRequest != "h" {
		t.Errorf("status %+v", status)
	}
}

func TestWhatAnAgentRefusesIsNotTakenForTheHubsOwnRefusal(t *testing.T) {
	now := time.Now()
	applied := func(release *v1alpha1.Release) *metav1.Condition {
		return meta.FindStatusCondition(release.Status.Conditions, v1alpha1.ConditionApplied)
	}
	for _, reason := range []string{v1alpha1.ReasonForbidden, v1alpha1.ReasonSuspended, v1alpha1.ReasonWaitingForWave} {
		release := &v1alpha1.Release{Status: v1alpha1.ReleaseStatus{Sequence: 7}}
		foldReport(release, &tunnel.Report{Sequence: 7, Applied: tunnel.Finding{Status: tunnel.False, Reason: reason, Message: "1 object"}}, 0, now)
		// The controller has nothing to hold back: what the agent said stays.
		if err := foldOutcome(release, Outcome{}, nil, 0, now); err != nil {
			t.Fatal(err)
		}
		if c := applied(release); c.Reason != reason || !strings.HasSuffix(c.Message, "1 object") {
			t.Errorf("%s: %+v", reason, c)
		}
		// The hub's own goes when the hub takes it back.
		if err := foldOutcome(release, Outcome{Waiting: &Finding{metav1.ConditionFalse, reason, "by the hub"}}, nil, 0, now); err != nil {
			t.Fatal(err)
		}
		foldReport(release, &tunnel.Report{Sequence: 7, Applied: tunnel.Finding{Status: tunnel.True, Reason: "Applied"}}, 0, now)
		if c := applied(release); c.Message != "by the hub" {
			t.Errorf("%s: a report took back what the hub said: %+v", reason, c)
		}
		if err := foldOutcome(release, Outcome{}, nil, 0, now); err != nil {
			t.Fatal(err)
		}
		if c := applied(release); c.Reason == reason {
			t.Errorf("%s: %+v", reason, c)
		}
	}
}
