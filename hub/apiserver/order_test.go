// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/apiservertest"
)

func TestACircleOfReleasesIsRefusedByName(t *testing.T) {
	t.Parallel()
	c := newClient(t, apiservertest.Start(t))
	on := func(name, cluster string, wave int32, names ...string) *corev1alpha1.Release {
		r := newRelease("team", name, cluster)
		r.Spec.ClusterWave = wave
		for _, other := range names {
			r.Spec.DependsOn = append(r.Spec.DependsOn, corev1alpha1.ReleaseReference{Name: other})
		}
		return r
	}
	refused := func(err error, field, circle string) {
		t.Helper()
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), circle) {
			t.Errorf("got %v, want invalid %s, which names %q", err, field, circle)
		}
	}
	refused(c.Create(t.Context(), on("self", "edge", 0, "self")), "spec.dependsOn", "self dependsOn self")

	// A dependency may be made later; what closes the circle is refused.
	create(t, c, on("web", "edge", 0, "db"), on("db", "far", 0, "base"))
	refused(c.Create(t.Context(), on("base", "edge", 0, "web")), "spec.dependsOn", "base dependsOn web, web dependsOn db, db dependsOn base")
	create(t, c, on("base", "edge", 0))
	refused(c.Create(t.Context(), on("base", "edge", 0, "web"), client.DryRunAll), "spec.dependsOn", "web dependsOn db")

	base := get(t, c, &corev1alpha1.Release{}, "team", "base")
	change := base.DeepCopy()
	change.Spec.DependsOn = []corev1alpha1.ReleaseReference{{Name: "web"}}
	refused(c.Update(t.Context(), change), "spec.dependsOn", "base dependsOn web, web dependsOn db, db dependsOn base")
	change = base.DeepCopy()
	change.Spec.ClusterWave = 1
	refused(c.Update(t.Context(), change), "spec.clusterWave", "base waits for the clusterWave of web, web dependsOn db, db dependsOn base")

	// What is no circle passes.
	web := get(t, c, &corev1alpha1.Release{}, "team", "web")
	web.Spec.ClusterWave = 1
	if err := c.Update(t.Context(), web); err != nil {
		t.Error(err)
	}
}

func TestDeletionsThatASyncHoldsAreConfirmed(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	r := l.release("team", "web", "edge")
	held := &corev1alpha1.HeldPrune{Sequence: 7, Count: 30, Total: 40, Digest: "sha256:aa"}
	sync := func(c client.Client, sequence int64, digest string, options ...client.SubResourceCreateOption) (*corev1alpha1.SyncRequest, error) {
		request := &corev1alpha1.SyncRequest{ConfirmDeletions: &corev1alpha1.DeletionConfirmation{Sequence: sequence, Digest: digest}}
		return request, c.SubResource("sync").Create(t.Context(), r, request, options...)
	}
	annotation := func() string {
		return get(t, l, &corev1alpha1.Release{}, "team", "web").Annotations[corev1alpha1.AnnotationConfirmDeletions]
	}
	t.Run("not when none are held", func(t *testing.T) {
		if _, err := sync(l, 7, "sha256:aa"); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "nothing to confirm") {
			t.Errorf("got %v", err)
		}
	})
	if _, err := l.Storage().Releases.UpdateStatus(t.Context(), client.ObjectKeyFromObject(r), "", func(r *corev1alpha1.Release) error {
		r.Status.HeldPrune = held
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	t.Run("not with another sequence or digest, and not without", func(t *testing.T) {
		for _, other := range []*corev1alpha1.HeldPrune{{Sequence: 8, Digest: "sha256:aa"}, {Sequence: 7, Digest: "sha256:bb"}} {
			if _, err := sync(l, other.Sequence, other.Digest); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "status.heldPrune") {
				t.Errorf("got %v", err)
			}
		}
		if _, err := sync(l, 0, ""); !apierrors.IsInvalid(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("not without the verb, by the subresource or by hand", func(t *testing.T) {
		l.host.deny("confirm releases")
		defer delete(l.host.denied, "confirm releases")
		if _, err := sync(l, 7, "sha256:aa"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "needs the verb confirm on releases") {
			t.Errorf("got %v", err)
		}
		byHand := get(t, l, &corev1alpha1.Release{}, "team", "web")
		byHand.Annotations = map[string]string{corev1alpha1.AnnotationConfirmDeletions: "7/sha256:aa/2026-01-01T00:00:00Z"}
		if err := l.Update(t.Context(), byHand); !apierrors.IsForbidden(err) {
			t.Errorf("by hand: %v", err)
		}
	})
	t.Run("a dry run confirms nothing", func(t *testing.T) {
		if _, err := sync(l, 7, "sha256:aa", client.DryRunAll); err != nil || annotation() != "" {
			t.Errorf("%v, annotation %q", err, annotation())
		}
	})
	t.Run("then the confirmation names both, and a sync is asked for", func(t *testing.T) {
		answer, err := sync(l, 7, "sha256:aa")
		if err != nil {
			t.Fatal(err)
		}
		if want := "7/sha256:aa/" + answer.RequestedAt; annotation() != want || answer.RequestedAt == "" {
			t.Errorf("annotation %q, want %q", annotation(), want)
		}
	})
	t.Run("a copy of the Release brings no confirmation along", func(t *testing.T) {
		copied := newRelease("team", "copy", "edge")
		copied.Annotations = map[string]string{corev1alpha1.AnnotationConfirmDeletions: annotation()}
		create(t, l, copied)
		if got := get(t, l, &corev1alpha1.Release{}, "team", "copy").Annotations; len(got) != 0 {
			t.Errorf("annotations %v", got)
		}
	})
}

func TestASuspendedReleaseTellsWhoAsksForASync(t *testing.T) {
	t.Parallel()
	c := newClient(t, apiservertest.Start(t))
	r := newRelease("team", "web", "edge")
	r.Spec.Suspend = true
	create(t, c, r)
	err := c.SubResource("sync").Create(t.Context(), r, &corev1alpha1.SyncRequest{})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "spec.suspend") {
		t.Errorf("got %v", err)
	}
}
