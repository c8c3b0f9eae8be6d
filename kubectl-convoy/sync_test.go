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
		"no condition at all is not the end": {shop(requestedAt), false, false},
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
