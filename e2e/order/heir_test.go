// SPDX-License-Identifier: Apache-2.0

package order_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

func (a *app) uid(name string) string {
	a.t.Helper()
	return a.onEdge("-n", a.name, "get", "configmap", name, "-o", "jsonpath={.metadata.uid}")
}

func TestAnUpgradeDeletesNothingThatASuspendedReleaseHasInItsRender(t *testing.T) {
	t.Parallel()
	a := newApp(t, "heir", map[string]string{"old/cm.yaml": configMap("cm", "1"), "old/db.yaml": configMap("db", "1"), "new/db.yaml": configMap("db", "2")})
	a.release("old")
	a.ready("old", "")
	uid := a.uid("db")
	a.release("new", func(s *corev1alpha1.ReleaseSpec) { s.SyncPolicy.Automatic = ptr.To(false) })
	a.says("new", "False", "ManualSync", "")
	a.patch("new", `{"suspend":true}`)
	a.says("new", "False", "Suspended", "")
	commit := a.commit(map[string]string{"old/cm.yaml": configMap("cm", "2"), "new/db.yaml": configMap("db", "2")})
	a.says("old", "False", "HandOverPending", `ConfigMap heir/db, which would be deleted, is in the render of Release "heir-new"`)
	a.value("cm", "a", "1")
	a.patch("new", `{"suspend":false,"syncPolicy":{"automatic":true}}`)
	a.ready("old", commit)
	a.ready("new", "")
	a.value("db", "a", "2")
	if got := a.uid("db"); got != uid {
		t.Errorf("it was made anew: %s, was %s", got, uid)
	}
}

func TestARemovalDeletesNothingThatAReleaseHasInItsRenderWhichWaitsForOthers(t *testing.T) {
	t.Parallel()
	a := newApp(t, "heirs", map[string]string{"old/db.yaml": configMap("db", "1"), "new/db.yaml": configMap("db", "2"), "base/cm.yaml": refused("cm")})
	a.release("old")
	a.ready("old", "")
	uid := a.uid("db")
	a.release("base")
	a.release("new", a.after("base"))
	a.says("new", "False", "DependencyNotReady", "heirs-base")
	a.onHub("-n", team, "delete", "release", a.named("old"), "--wait=false")
	a.until("old", func(r *corev1alpha1.Release) bool { return is(r, "Ready", "False", "HandOverPending", "heirs-new") })
	a.commit(map[string]string{"old/db.yaml": configMap("db", "1"), "new/db.yaml": configMap("db", "2"), "base/cm.yaml": configMap("cm", "1")})
	if err := harness.WaitGone(a.ctx, world.hub.Plane.Dynamic(), install.Releases, team, a.named("old")); err != nil {
		t.Fatal(err)
	}
	a.ready("new", "")
	a.value("db", "a", "2")
	if got := a.uid("db"); got != uid {
		t.Errorf("it was made anew: %s, was %s", got, uid)
	}
}

func TestOneCommitMovesAnObjectBetweenReleasesWhoeverIsOrderedFirst(t *testing.T) {
	t.Parallel()
	a := newApp(t, "swap", map[string]string{"one/cm.yaml": configMap("of-one", "0"), "one/db.yaml": configMap("db", "0"), "two/cm.yaml": configMap("of-two", "0")})
	a.release("one")
	a.release("two")
	a.ready("one", "")
	a.ready("two", "")
	uid := a.uid("db")
	from, to := "one", "two"
	for _, round := range []string{"1", "2", "3"} {
		commit := a.commit(map[string]string{"one/cm.yaml": configMap("of-one", round), "two/cm.yaml": configMap("of-two", round), to + "/db.yaml": configMap("db", round)})
		a.ready(to, commit)
		a.ready(from, commit)
		a.value("db", "a", round)
		if got := a.uid("db"); got != uid {
			t.Fatalf("round %s: it was made anew: %s, was %s", round, got, uid)
		}
		from, to = to, from
	}
	// The commit that takes it from one breaks the other, which is to have it.
	a.commit(map[string]string{from + "/cm.yaml": configMap("of-"+from, "5"), to + "/cm.yaml": "kind: [\n", to + "/db.yaml": configMap("db", "5")})
	a.until(to, func(r *corev1alpha1.Release) bool { return is(r, "Rendered", "False", "RenderFailed", "") })
	a.value("of-"+from, "a", "5")
	a.until(from, func(r *corev1alpha1.Release) bool {
		return len(r.Status.Exceptions) == 1 && r.Status.Exceptions[0].Reason == "Orphaned"
	})
	commit := a.commit(map[string]string{from + "/cm.yaml": configMap("of-"+from, "5"), to + "/cm.yaml": configMap("of-"+to, "6"), to + "/db.yaml": configMap("db", "6")})
	a.ready(to, commit)
	a.value("db", "a", "6")
	if got := a.uid("db"); got != uid {
		t.Errorf("it was made anew: %s, was %s", got, uid)
	}
	// What nobody has any more goes, when both are rendered.
	commit = a.commit(map[string]string{from + "/cm.yaml": configMap("of-"+from, "7"), to + "/cm.yaml": configMap("of-"+to, "7")})
	a.ready(to, commit)
	if err := harness.WaitGone(a.ctx, world.edge.Plane.Dynamic(), configMaps, a.name, "db"); err != nil {
		t.Error(err)
	}
}

func TestWhatIsLetGoIsTakenOverWithoutWaitingForTheNextAttempt(t *testing.T) {
	t.Parallel()
	a := newApp(t, "letgo", map[string]string{
		"old/db.yaml": configMap("db", "1"), "new/db.yaml": configMap("db", "2"), "stuck/free.yaml": configMap("free", "1"),
		"stuck/held.yaml": strings.Replace(configMap("held", "1"), "{name: held}", "{name: held, finalizers: [example.test/hold]}", 1),
	})
	a.release("stuck")
	a.release("old")
	a.ready("old", "")
	uid := a.uid("db")
	hour := metav1.Duration{Duration: time.Hour}
	a.release("new", func(s *corev1alpha1.ReleaseSpec) {
		s.SyncPolicy.Retry = corev1alpha1.RetryPolicy{Minimum: &hour, Maximum: &hour}
	})
	a.says("new", "False", "OwnedByOther", "letgo-old")
	a.patch("old", `{"deletionPolicy":{"keepWorkloads":true}}`)
	began := time.Now()
	a.onHub("-n", team, "delete", "release", a.named("old"), "--timeout="+patience.String())
	t.Logf("gone after %s", time.Since(began).Round(10*time.Millisecond))
	a.ready("new", "")
	t.Logf("taken over after %s", time.Since(began).Round(10*time.Millisecond))
	if got := a.uid("db"); got != uid {
		t.Errorf("it was made anew: %s, was %s", got, uid)
	}

	// A removal that a finalizer holds is let go as fast.
	a.ready("stuck", "")
	a.onHub("-n", team, "delete", "release", a.named("stuck"), "--wait=false")
	_, err := harness.WaitFor(a.ctx, world.edge.Plane.Dynamic(), configMaps, a.name, "held", func(u *unstructured.Unstructured) (bool, error) {
		return u.GetDeletionTimestamp() != nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	a.patch("stuck", `{"deletionPolicy":{"keepWorkloads":true}}`)
	if err := harness.WaitGone(a.ctx, world.hub.Plane.Dynamic(), install.Releases, team, a.named("stuck")); err != nil {
		t.Fatal(err)
	}
	t.Logf("a removal that was held is let go after %s", time.Since(began).Round(10*time.Millisecond))
	_, err = harness.WaitFor(a.ctx, world.edge.Plane.Dynamic(), configMaps, a.name, "free", func(u *unstructured.Unstructured) (bool, error) {
		return u.GetAnnotations()[corev1alpha1.AnnotationOwner] == "" && u.GetDeletionTimestamp() == nil, nil
	})
	if err != nil {
		t.Error(err)
	}
	t.Logf("and its objects carry no mark after %s", time.Since(began).Round(10*time.Millisecond))
	a.onEdge("-n", a.name, "patch", "configmap", "held", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
}
