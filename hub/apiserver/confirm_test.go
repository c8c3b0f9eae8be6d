// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

func TestAHeldDeletionCanBeConfirmed(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	list := l.releases("team", "edge", 9)
	if passed, _, _ := l.deletes(l, list); passed != 5 {
		t.Fatalf("%d passed", passed)
	}
	r := list[5]
	t.Run("not what is not held", func(t *testing.T) {
		if _, err := l.confirm(l.release("team", "running", "edge"), l.held(r)); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "nothing to confirm") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("not with another sequence or digest", func(t *testing.T) {
		h := *l.held(r)
		h.Sequence++
		if _, err := l.confirm(r, &h); !apierrors.IsConflict(err) {
			t.Errorf("got %v", err)
		}
		h = *l.held(list[6])
		if _, err := l.confirm(r, &h); !apierrors.IsConflict(err) {
			t.Errorf("with the digest of another: %v", err)
		}
		if _, err := l.confirm(r, &corev1alpha1.HeldDeletion{}); !apierrors.IsInvalid(err) {
			t.Errorf("with none: %v", err)
		}
	})
	t.Run("not without the verb", func(t *testing.T) {
		l.host.deny("confirm releases")
		_, err := l.confirm(r, l.held(r))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "needs the verb confirm on releases") {
			t.Errorf("got %v", err)
		}
		delete(l.host.denied, "confirm releases")
	})
	t.Run("a dry run confirms nothing", func(t *testing.T) {
		if request, err := l.confirm(r, l.held(r), client.DryRunAll); err != nil || request.ExpiresAt == nil {
			t.Fatalf("%v, expires %v", err, request.ExpiresAt)
		}
		if err := l.Delete(t.Context(), r); !isHeld(err) {
			t.Errorf("deleted: %v", err)
		}
	})
	t.Run("then it passes once, and costs nothing", func(t *testing.T) {
		request, err := l.confirm(r, l.held(r))
		if err != nil {
			t.Fatal(err)
		}
		if want := l.clock.Now().Add(time.Hour); !request.ExpiresAt.Time.Equal(want) || request.Name != r.Name {
			t.Errorf("answered %+v, want until %s", request, want)
		}
		if err := l.Delete(t.Context(), r); err != nil {
			t.Error(err)
		}
		if err := l.Delete(t.Context(), list[6]); !isHeld(err) {
			t.Errorf("another one: %v", err)
		}
	})
	t.Run("a newer order ends it", func(t *testing.T) {
		if _, err := l.confirm(list[6], l.held(list[6])); err != nil {
			t.Fatal(err)
		}
		l.order(list[6], 8)
		if err := l.Delete(t.Context(), list[6]); !isHeld(err) {
			t.Errorf("got %v", err)
		}
		if h := l.held(list[6]); h.Sequence != 8 {
			t.Errorf("recorded %+v, want the new order", h)
		}
	})
	t.Run("an hour ends it", func(t *testing.T) {
		// The budget is spent again when the window is over.
		if _, err := l.confirm(list[7], l.held(list[7])); err != nil {
			t.Fatal(err)
		}
		l.clock.SetTime(l.clock.Now().Add(time.Hour))
		create(t, l, newCluster("team", "spend"))
		if passed, _, _ := l.deletes(l, l.releases("team", "spend", 5)); passed != 5 {
			t.Fatalf("%d passed", passed)
		}
		if err := l.Delete(t.Context(), list[7]); !isHeld(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("many that are confirmed pass together", func(t *testing.T) {
		for _, r := range list[6:] {
			if err := l.Delete(t.Context(), r); !isHeld(err) {
				t.Fatal(err)
			}
			if _, err := l.confirm(r, l.held(r)); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range list[6:] {
			if err := l.Delete(t.Context(), r); err != nil {
				t.Error(err)
			}
		}
	})
}
