// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/report"
)

var key = types.NamespacedName{Namespace: "team", Name: "apps"}

// world is a cache with one repository, a remote and a status. reporter is the
// status: both have a method of one name.
type world struct {
	repository *v1alpha1.GitRepository
	revision   string
	failing    error
	asked      int
	outcomes   []report.SourceOutcome
}

func (w *world) Source(string, types.NamespacedName) (v1alpha1.Source, bool) {
	return w.repository, w.repository != nil
}

func (w *world) Check(context.Context, v1alpha1.Source) (string, error) {
	w.asked++
	return w.revision, w.failing
}

type reporter struct{ *world }

func (w *reporter) Source(_ context.Context, _ v1alpha1.Source, outcome report.SourceOutcome) error {
	w.outcomes = append(w.outcomes, outcome)
	return nil
}

type denied struct{ error }

func (denied) Reason() string { return v1alpha1.ReasonDenied }

func newWorld() (*world, *Reconciler, *clocktesting.FakePassiveClock) {
	w := &world{revision: "main@sha1:1", repository: &v1alpha1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "apps", UID: "u", Generation: 1},
		Spec:       v1alpha1.GitRepositorySpec{Interval: &metav1.Duration{Duration: time.Minute}},
	}}
	clock := clocktesting.NewFakePassiveClock(time.Now())
	return w, New(Options{Kind: v1alpha1.KindGitRepository, Cache: w, Checker: w, Reporter: &reporter{w}, Clock: clock}), clock
}

func reconcileOnce(t *testing.T, r *Reconciler) time.Duration {
	t.Helper()
	result, err := r.Reconcile(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

func TestASourceIsAskedAtItsIntervalAndNotOftener(t *testing.T) {
	w, r, clock := newWorld()
	next := reconcileOnce(t, r)
	if next < 57*time.Second || next > 63*time.Second {
		t.Errorf("asked again after %s, want a minute, somewhat varied", next)
	}
	// A resync, and a change of the status alone, ask nobody.
	clock.SetTime(clock.Now().Add(30 * time.Second))
	reconcileOnce(t, r)
	if w.asked != 1 {
		t.Errorf("asked %d times, want 1", w.asked)
	}
	clock.SetTime(clock.Now().Add(34 * time.Second))
	reconcileOnce(t, r)
	if w.asked != 2 {
		t.Errorf("asked %d times after the interval, want 2", w.asked)
	}
	// A change of the spec, and a reference that was checked, do.
	w.repository.Generation = 2
	reconcileOnce(t, r)
	w.repository.Status.CheckedSecrets = []string{"git"}
	reconcileOnce(t, r)
	if w.asked != 4 {
		t.Errorf("asked %d times after changes, want 4", w.asked)
	}
}

func TestWhatIsSaidOfASource(t *testing.T) {
	w, r, clock := newWorld()
	reconcileOnce(t, r)
	want := report.SourceOutcome{Generation: 1, Revision: "main@sha1:1", Ready: report.Finding{Status: "True", Reason: "Reachable", Message: "the ref was found"}}
	if diff := cmp.Diff(want, w.outcomes[0]); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	for reason, err := range map[string]error{v1alpha1.ReasonUnreachable: errors.New("no route"), v1alpha1.ReasonDenied: denied{errors.New("loopback")}} {
		w.failing = err
		clock.SetTime(clock.Now().Add(2 * time.Minute))
		reconcileOnce(t, r)
		got := w.outcomes[len(w.outcomes)-1]
		if got.Ready.Status != metav1.ConditionFalse || got.Ready.Reason != reason || got.Revision != "" || got.Ready.Message != err.Error() {
			t.Errorf("%v gives %+v, want reason %s and no revision", err, got, reason)
		}
	}
}

func TestAFailingSourceIsAskedSoonAndThenLessOften(t *testing.T) {
	w, r, clock := newWorld()
	w.failing = errors.New("no route")
	var pauses []time.Duration
	for range 8 {
		next := reconcileOnce(t, r)
		pauses = append(pauses, next)
		clock.SetTime(clock.Now().Add(next))
	}
	want := firstRetry
	for i := range 5 {
		if pauses[i] != want<<i {
			t.Errorf("pauses %v, want 2s, 4s, 8s, 16s, 32s, then the interval", pauses)
			break
		}
	}
	if last := pauses[7]; last < 57*time.Second || last > 63*time.Second {
		t.Errorf("the last pause is %s, want about the interval", last)
	}
	w.failing = nil
	reconcileOnce(t, r)
	w.failing = errors.New("no route")
	clock.SetTime(clock.Now().Add(2 * time.Minute))
	if next := reconcileOnce(t, r); next != 2*time.Second {
		t.Errorf("after a success the first pause is %s, want 2s", next)
	}
}

func TestASourceThatTellsOfAChangeIsAskedAtOnce(t *testing.T) {
	w, r, _ := newWorld()
	reconcileOnce(t, r)
	r.Told(key)
	reconcileOnce(t, r)
	reconcileOnce(t, r)
	if w.asked != 2 {
		t.Errorf("asked %d times, want 2: once, and once when it told", w.asked)
	}
}

func TestASourceThatCanBeUsedSaysWhatWasSeen(t *testing.T) {
	for object, want := range map[v1alpha1.Source]string{
		&v1alpha1.GitRepository{}: "the ref was found",
		&v1alpha1.OCIRegistry{}:   "the artifact was found",
		&v1alpha1.HelmRegistry{Spec: v1alpha1.HelmRegistrySpec{URL: "https://charts.example"}}: "the index was read",
		&v1alpha1.HelmRegistry{Spec: v1alpha1.HelmRegistrySpec{URL: "oci://charts.example"}}:   "the registry answers",
	} {
		if got := found(object); got != want {
			t.Errorf("%s %s: %q, want %q", object.SourceKind(), object.SourceURL(), got, want)
		}
	}
}
