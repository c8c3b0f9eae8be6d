// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/ptr"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestWhatTheSpecSaysReachesTheOrder(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.ready("web")
	before, _ := s.ordered("web")
	s.edit("web", func(r *corev1alpha1.Release) {
		r.Spec.ServiceAccountName = "deployer"
		r.Spec.Drift.Ignore = []corev1alpha1.DriftIgnore{{Kind: "Deployment", Pointers: []string{"/spec/replicas"}}}
		r.Spec.SyncPolicy.DeletionBudget = &corev1alpha1.DeletionBudget{Count: ptr.To[int32](3)}
		r.Spec.SyncPolicy.Retry = corev1alpha1.RetryPolicy{Limit: ptr.To[int32](2), Minimum: &metav1.Duration{Duration: time.Second}}
		r.Spec.SyncPolicy.Prune.Allowed = []string{"Namespace"}
		r.Spec.SyncPolicy.Prune.Propagation = metav1.DeletePropagationForeground
		r.Spec.ClusterWave = 7
	})
	order := s.untilOrdered("web", "with new terms", func(o tunnel.Order) bool { return o.Sequence != before.Sequence })
	want := before
	want.Sequence, want.IssuedAt = order.Sequence, order.IssuedAt
	want.ServiceAccount, want.Wave = "team:deployer", 7
	want.Ignore = []tunnel.Ignore{{Kind: "Deployment", Pointers: []string{"/spec/replicas"}}}
	want.Policy.Budget = &tunnel.DeletionBudget{Count: 3, Percent: 50}
	want.Policy.Retry = &tunnel.Retry{Limit: 2, MinSeconds: 1, MaxSeconds: 600}
	want.Policy.Allowed, want.Policy.Propagation = []string{"Namespace"}, "Foreground"
	want.Requires = append(want.Requires, "impersonate.v1", "ignore.v1", "budget.v1", "prune.v1", "wave.v1", "retry.v1")
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	// Looked at again it is the same order.
	s.applied("web")
	s.untilCondition("web", "Ready", "True Ready")
	version := s.version("/registry/convoy.kumodo.io/core.convoy.kumodo.io/releases/team/web")
	for range 3 {
		s.releases.Add(key("web"))
	}
	s.create("other")
	s.untilCondition("other", "Applied", "False Progressing")
	if now, _ := s.ordered("web"); now.Sequence != order.Sequence || s.version("/registry/convoy.kumodo.io/core.convoy.kumodo.io/releases/team/web") != version {
		t.Error("an unchanged spec was ordered or written again")
	}
}

func TestASuspendedReleaseIsLeftAlone(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.ready("web")
	first, _ := s.ordered("web")
	s.edit("web", func(r *corev1alpha1.Release) { r.Spec.Suspend = true })
	s.untilCondition("web", "Ready", "False Suspended")
	order := s.untilOrdered("web", "that says so", func(o tunnel.Order) bool { return o.Policy.Suspended })
	if order.Objects.Digest != first.Objects.Digest {
		t.Error("another render is ordered")
	}
	made := s.renderer.made()
	s.git.push("2", map[string]string{"app": "two"})
	s.applied("web") // the agent has taken note
	s.edit("web", func(r *corev1alpha1.Release) { r.Spec.TargetNamespace = "other" })
	s.until("web", "its newest generation", func(r *corev1alpha1.Release) bool { return r.Status.ObservedGeneration == r.Generation })
	if now, _ := s.ordered("web"); now.Sequence != order.Sequence || s.renderer.made() != made {
		t.Errorf("%d renders, sequence %d; want %d, %d", s.renderer.made(), now.Sequence, made, order.Sequence)
	}
	s.untilCondition("web", "Applied", "False Suspended")
	s.edit("web", func(r *corev1alpha1.Release) { r.Spec.Suspend = false })
	s.untilOrdered("web", "of what is new", func(o tunnel.Order) bool {
		return o.Revision == "main@sha1:2" && !o.Policy.Suspended && o.Policy.Namespace == "other"
	})
}

func TestWhatAClusterDoesNotPermitIsNotOrdered(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	permit := func(allowed *corev1alpha1.AllowedPolicy) {
		t.Helper()
		_, err := s.server.Storage().Clusters.Update(t.Context(), key("edge"), "", func(c *corev1alpha1.Cluster) error {
			c.Spec.Allowed = allowed
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.ready("web")
	permit(&corev1alpha1.AllowedPolicy{ClusterScopedKinds: []string{}})
	order := s.untilOrdered("web", "with what is permitted", func(o tunnel.Order) bool { return o.Permitted != nil })
	if diff := cmp.Diff(&tunnel.Allowed{ClusterKinds: []string{}}, order.Permitted); diff != "" || order.Requires[len(order.Requires)-1] != tunnel.FeaturePermitted {
		t.Errorf("requires %v; permitted (-want +got):\n%s", order.Requires, diff)
	}
	permit(&corev1alpha1.AllowedPolicy{TargetNamespaces: []string{"shop", "team-*"}})
	s.untilSays("web", "False Forbidden", `spec.allowed.targetNamespaces of Cluster "edge" does not permit the namespace "team"; what runs is kept`)
	permit(&corev1alpha1.AllowedPolicy{TargetNamespaces: []string{"te*"}, ServiceAccounts: []string{"*:deployer"}})
	s.untilSays("web", "False Forbidden", `spec.allowed.serviceAccounts of Cluster "edge" asks for a spec.serviceAccountName`)
	s.edit("web", func(r *corev1alpha1.Release) { r.Spec.ServiceAccountName = "root" })
	s.untilSays("web", "False Forbidden", `does not permit "team:root"`)
	if now, _ := s.ordered("web"); now.Sequence != order.Sequence {
		t.Error("it was ordered all the same")
	}
	s.edit("web", func(r *corev1alpha1.Release) { r.Spec.ServiceAccountName = "deployer" })
	s.untilOrdered("web", "as deployer", func(o tunnel.Order) bool { return o.ServiceAccount == "team:deployer" })
	permit(nil)
	s.untilOrdered("web", "without limits", func(o tunnel.Order) bool { return o.Permitted == nil })
}

// held plays the agent: the order waits for its deletions to be confirmed.
func (s *stage) held(name, list string) {
	s.t.Helper()
	order, _ := s.ordered(name)
	answer := s.reporter.Observe(s.t.Context(), s.cluster, []tunnel.Report{{
		Release: order.Release, Sequence: order.Sequence, Counter: order.Sequence + 1, Settled: true,
		Applied: tunnel.Finding{Status: tunnel.False, Reason: "PruneHeld", Message: "30 of 40 objects"},
		InSync:  tunnel.Finding{Status: tunnel.True, Reason: "InSync"}, Healthy: tunnel.Finding{Status: tunnel.True, Reason: "Healthy"},
		Held: &tunnel.HeldPrune{Sequence: order.Sequence, Count: 30, Total: 40, Digest: list, Objects: []string{"ConfigMap team/a"}, Since: time.Now()},
	}})
	if len(answer.Taken) != 1 {
		s.t.Fatalf("the report was not taken: %+v", answer)
	}
}

// annotated sets an annotation as the subresources do, for a user who may.
func (s *stage) annotated(name, annotation, value string) {
	s.t.Helper()
	ctx := request.WithUser(s.t.Context(), &user.DefaultInfo{Name: "root", Groups: []string{apiserver.GroupAdmin}})
	_, err := s.server.Storage().Releases.Update(ctx, key(name), "", func(r *corev1alpha1.Release) error {
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, annotation, value)
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestDeletionsThatAreHeldAreOrderedOnceTheyAreConfirmed(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.ready("web")
	s.held("web", "sha256:aa")
	r := s.untilCondition("web", "Ready", "False PruneHeld")
	if h := r.Status.HeldPrune; h == nil || h.Count != 30 || h.Total != 40 || h.Digest != "sha256:aa" || len(h.Objects) != 1 || h.Sequence != r.Status.Sequence {
		t.Fatalf("heldPrune is %+v", r.Status.HeldPrune)
	}
	first, _ := s.ordered("web")
	confirm := func(sequence int64, digest string, at time.Time) string {
		value := fmt.Sprintf("%d/%s/%s", sequence, digest, at.UTC().Format(time.RFC3339Nano))
		s.annotated("web", corev1alpha1.AnnotationConfirmDeletions, value)
		s.until("web", "an answer to "+value, func(r *corev1alpha1.Release) bool { return r.Status.LastConfirmation == value })
		return value
	}
	confirm(first.Sequence, "sha256:bb", time.Now())
	confirm(first.Sequence-1, "sha256:aa", time.Now())
	confirm(first.Sequence, "sha256:aa", time.Now().Add(-2*time.Hour))
	if now, _ := s.ordered("web"); now.Sequence != first.Sequence {
		t.Fatal("what is not held was confirmed")
	}
	at := time.Now().Truncate(time.Millisecond)
	confirm(first.Sequence, "sha256:aa", at)
	order := s.untilOrdered("web", "that is confirmed", func(o tunnel.Order) bool { return o.Policy.Confirmed == "sha256:aa" })
	if !order.Policy.ConfirmedUntil.Equal(at.Add(time.Hour)) || order.Objects.Digest != first.Objects.Digest {
		t.Errorf("confirmed until %s, render %s", order.Policy.ConfirmedUntil, order.Objects.Digest)
	}
	r = s.untilCondition("web", "Applied", "False Progressing")
	if r.Status.HeldPrune != nil {
		t.Error("what is ordered is held no more")
	}
	s.applied("web")
	s.untilCondition("web", "Ready", "True Ready")
	// The end of a confirmation is no reason for an order, and the next one carries it on.
	s.edit("web", func(r *corev1alpha1.Release) { r.Spec.SyncPolicy.Immutable = corev1alpha1.ImmutableReplace })
	s.untilOrdered("web", "that replaces, with what is confirmed still", func(o tunnel.Order) bool { return o.Policy.Replace && o.Policy.Confirmed == "sha256:aa" })
}

func TestAnActionOnAHookIsOrdered(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.ready("web")
	first, _ := s.ordered("web")
	act := func(value string) tunnel.Order {
		s.annotated("web", corev1alpha1.AnnotationHookRequested, value)
		s.until("web", "an answer to "+value, func(r *corev1alpha1.Release) bool { return r.Status.LastHookRequest == value })
		order, _ := s.ordered("web")
		return order
	}
	if order := act("explode/2026-01-01T00:00:00Z/7-1/migrate"); order.Sequence != first.Sequence {
		t.Error("a word that is none was ordered")
	}
	act("retry/2026-01-01T00:00:00Z/7-1/Job/team/migrate")
	order := s.untilOrdered("web", "with the action", func(o tunnel.Order) bool { return len(o.Actions) == 1 })
	if diff := cmp.Diff([]tunnel.HookAction{{Hook: "Job/team/migrate", Run: "7-1", Action: "retry"}}, order.Actions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	if !strings.Contains(strings.Join(order.Requires, " "), tunnel.FeatureHooks) || order.Force || order.Objects.Digest != first.Objects.Digest {
		t.Errorf("order %+v", order)
	}
	act("skip/2026-01-01T00:00:01Z/7-2/Job/team/migrate")
	s.untilOrdered("web", "with both, newest last", func(o tunnel.Order) bool { return len(o.Actions) == 2 && o.Actions[1].Action == "skip" })
}

func TestAForcedSyncIsOrderedAsOne(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.ready("web")
	s.annotated("web", corev1alpha1.AnnotationSyncRequestedAt, "2026-01-01T00:00:00Z")
	first, _ := s.ordered("web")
	s.untilOrdered("web", "again", func(o tunnel.Order) bool { return o.Sequence >= first.Sequence && !o.Force })
	s.annotated("web", corev1alpha1.AnnotationSyncForceRequestedAt, "2026-01-01T00:00:00Z")
	s.untilOrdered("web", "by force", func(o tunnel.Order) bool { return o.Force })
}
