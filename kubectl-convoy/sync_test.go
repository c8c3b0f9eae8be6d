// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

var namespaces = schema.GroupResource{Resource: "namespaces"}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// shop is a Release whose status has acted on the sync at the given time.
func shop(acted string, conditions ...metav1.Condition) corev1alpha1.Release {
	return corev1alpha1.Release{
		TypeMeta:   ofKind("Release"),
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "team-a", Generation: 2, ResourceVersion: "7"},
		Status: corev1alpha1.ReleaseStatus{
			ObservedGeneration: 2, LastSyncRequest: acted, Conditions: conditions,
		},
	}
}

var (
	ready       = condition(corev1alpha1.ConditionReady, metav1.ConditionTrue, corev1alpha1.ReasonReady, "5 objects")
	progressing = condition(corev1alpha1.ConditionApplied, metav1.ConditionUnknown, corev1alpha1.ReasonProgressing, "wave 1")
)

var (
	done     = condition(corev1alpha1.ConditionApplied, metav1.ConditionTrue, corev1alpha1.ReasonApplied, "")
	rejected = condition(corev1alpha1.ConditionApplied, metav1.ConditionFalse, corev1alpha1.ReasonDryRunFailed, "Deployment shop/web: rejected")
)

// operated is a Release of order 7 whose last operation was for the given order.
func operated(release corev1alpha1.Release, phase string, sequence int64) corev1alpha1.Release {
	release.Status.Sequence = 7
	release.Status.LastOperation = &corev1alpha1.Operation{
		Type: corev1alpha1.OperationSync, Phase: phase, Sequence: sequence, Message: "after 5m0s still waiting for Deployment shop/web",
	}
	return release
}

func limited(release corev1alpha1.Release, limit int32) corev1alpha1.Release {
	release.Spec.SyncPolicy.Retry = corev1alpha1.RetryPolicy{Limit: &limit}
	return release
}

func TestSyncWithWaitEndsWithWhatTheSyncFailedOf(t *testing.T) {
	hub := newFakeHub(t)
	hub.releases = []corev1alpha1.Release{
		limited(operated(shop(requestedAt, rejected), corev1alpha1.PhaseFailed, 7), 1),
		operated(shop(requestedAt, done), corev1alpha1.PhaseRunning, 7),
		operated(shop(requestedAt, done), corev1alpha1.PhaseFailed, 7),
	}
	out, _, err := hub.run(t, "sync", "shop", "--wait")
	if !errors.Is(err, errSyncFailed) || !strings.Contains(err.Error(), "Sync Failed: after 5m0s still waiting for Deployment shop/web") {
		t.Errorf("got %v, want errSyncFailed that names the object", err)
	}
	if !strings.Contains(out, "rejected (it is tried again, 1 times at most)") {
		t.Errorf("printed %q", out)
	}
}

func TestSyncAsksOnceAndReturns(t *testing.T) {
	hub := newFakeHub(t)
	hub.releases = []corev1alpha1.Release{shop("")}
	out, _, err := hub.run(t, "sync", "shop", "--force")
	if err != nil {
		t.Fatal(err)
	}
	if len(hub.synced) != 1 || !hub.synced[0].Force {
		t.Errorf("requests: %+v, want one with force", hub.synced)
	}
	if want := "release/shop sync requested at " + requestedAt + "\n"; out != want {
		t.Errorf("printed %q, want %q", out, want)
	}
}

func TestSyncConfirmsTheDeletionsThatItTells(t *testing.T) {
	hub := newFakeHub(t)
	held := shop("")
	held.Status.HeldPrune = &corev1alpha1.HeldPrune{Sequence: 7, Count: 3, Total: 4, Digest: "sha256:aa", Objects: []string{"ConfigMap shop/a", "ConfigMap shop/b"}}
	hub.releases = []corev1alpha1.Release{held}
	out, _, err := hub.run(t, "sync", "shop", "--confirm-deletions")
	if err != nil {
		t.Fatal(err)
	}
	want := []corev1alpha1.DeletionConfirmation{{Sequence: 7, Digest: "sha256:aa"}}
	var got []corev1alpha1.DeletionConfirmation
	for _, request := range hub.synced {
		got = append(got, *request.ConfirmDeletions)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("confirmed (-want +got):\n%s", diff)
	}
	text := "release/shop deletes 3 of 4 objects, held by order 7:\n  ConfigMap shop/a\n  ConfigMap shop/b\n  and 1 more\nrelease/shop sync requested at " + requestedAt + "\n"
	if diff := cmp.Diff(text, out); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

func TestSyncConfirmsNothingThatIsNotHeld(t *testing.T) {
	hub := newFakeHub(t)
	hub.releases = []corev1alpha1.Release{shop("")}
	if _, _, err := hub.run(t, "sync", "shop", "--confirm-deletions"); !errors.Is(err, errNotHeldSync) || len(hub.synced) > 0 {
		t.Errorf("got %v and %d requests", err, len(hub.synced))
	}
}

func TestSyncWithWaitTellsTheStoryAndEndsWhenReady(t *testing.T) {
	hub := newFakeHub(t)
	hub.releases = []corev1alpha1.Release{
		// Ready, but of before: the hub has not acted yet.
		shop("2026-01-01T11:00:00Z", ready),
		shop(requestedAt, progressing),
		shop(requestedAt, progressing),
		shop(requestedAt, ready),
	}
	out, _, err := hub.run(t, "sync", "shop", "--wait")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"release/shop sync requested at " + requestedAt,
		"release/shop waiting for the hub to act on it",
		"release/shop Applied=Unknown Progressing: wave 1",
		"release/shop Ready=True Ready: 5 objects",
		"",
	}
	if diff := cmp.Diff(want, strings.Split(out, "\n")); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestSyncWithWaitEndsWhenTheSyncHasFailed(t *testing.T) {
	hub := newFakeHub(t)
	hub.releases = []corev1alpha1.Release{
		shop(requestedAt, condition(corev1alpha1.ConditionApplied, metav1.ConditionFalse, corev1alpha1.ReasonDryRunFailed, "Deployment shop/web: rejected")),
	}
	_, _, err := hub.run(t, "sync", "shop", "--wait")
	if !errors.Is(err, errSyncFailed) || !strings.Contains(err.Error(), "Deployment shop/web") {
		t.Errorf("got %v, want errSyncFailed that names the object", err)
	}
}

func TestSyncWithWaitSaysWhatItLastSawWhenTimeIsUp(t *testing.T) {
	hub := newFakeHub(t)
	hub.releases = []corev1alpha1.Release{shop(requestedAt, progressing)}
	_, _, err := hub.run(t, "sync", "shop", "--wait", "--timeout", "50ms")
	if !errors.Is(err, errSyncTimeout) || !strings.Contains(err.Error(), "wave 1") {
		t.Errorf("got %v, want errSyncTimeout with what was last seen", err)
	}
}

func TestSyncOfAnUnknownReleaseSaysHowToFindIt(t *testing.T) {
	_, _, err := newFakeHub(t).run(t, "sync", "shop")
	if err == nil || !strings.Contains(err.Error(), "kubectl get releases -A") {
		t.Errorf("got %v, want a hint to kubectl get releases -A", err)
	}
}

func TestJudgeReadsAStatus(t *testing.T) {
	tests := map[string]struct {
		release      corev1alpha1.Release
		done, failed bool
	}{
		"a newer request that was acted on covers ours": {shop("2026-01-01T12:00:01Z", ready), true, false},
		"an older request does not":                     {shop("2026-01-01T11:59:59Z", ready), false, false},
		"a value that is no time does not":              {shop("now", ready), false, false},
		"a failed render is the end": {
			shop(requestedAt, condition(corev1alpha1.ConditionRendered, metav1.ConditionFalse, corev1alpha1.ReasonRenderFailed, "")), false, true,
		},
		"a cluster that is away is not the end": {
			shop(requestedAt, condition(corev1alpha1.ConditionApplied, metav1.ConditionFalse, corev1alpha1.ReasonClusterNotReady, "")), false, false,
		},
		"applied but not healthy yet is not the end": {
			shop(requestedAt, condition(corev1alpha1.ConditionApplied, metav1.ConditionTrue, corev1alpha1.ReasonApplied, "")), false, false,
		},
		"no condition at all is not the end":                       {shop(requestedAt), false, false},
		"applied, and not healthy when the sync ended, is the end": {operated(shop(requestedAt, done), corev1alpha1.PhaseFailed, 7), false, true},
		"a sync that still runs is not the end":                    {operated(shop(requestedAt, done), corev1alpha1.PhaseRunning, 7), false, false},
		"a failed sync of an older order is not the end":           {operated(shop(requestedAt, done), corev1alpha1.PhaseFailed, 6), false, false},
		"an attempt that could not be made is not the end":         {operated(shop(requestedAt, progressing), corev1alpha1.PhaseFailed, 7), false, false},
		"a failure that is tried again a few times is not the end": {limited(operated(shop(requestedAt, rejected), corev1alpha1.PhaseFailed, 7), 3), false, false},
		"one that is not tried again is the end":                   {limited(operated(shop(requestedAt, rejected), corev1alpha1.PhaseFailed, 7), 0), false, true},
		"one that a person aborted is the end":                     {limited(operated(shop(requestedAt, rejected), corev1alpha1.PhaseAborted, 7), 3), false, true},
		"the end of all attempts is the end": {limited(operated(shop(requestedAt,
			condition(corev1alpha1.ConditionApplied, metav1.ConditionFalse, corev1alpha1.ReasonRetriesEnded, "")), corev1alpha1.PhaseFailed, 7), 3), false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := judge(&test.release, requestedAt)
			if got.done != test.done || got.failed != test.failed || got.text == "" {
				t.Errorf("got %+v, want done %v, failed %v and a text", got, test.done, test.failed)
			}
		})
	}
}
