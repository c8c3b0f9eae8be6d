// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver"
	"kumodo.io/convoy/hub/apiserver/apiservertest"
)

func TestDeletionsThatAreMoreThanTheBudgetAreHeld(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	list := l.releases("team", "edge", 30)
	passed, held, err := l.deletes(l, list)
	if passed != 6 || held != 24 {
		t.Errorf("%d passed and %d were held, want 20 percent of 30", passed, held)
	}
	for _, want := range []string{`6 of at most 6 Releases of namespace "team" were deleted since`, "there were 30 then", "its workloads go on running", "kubectl convoy confirm -n team edge-29", "or wait until"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	last := list[29]
	got := get(t, l, &corev1alpha1.Release{}, "team", last.Name)
	if got.DeletionTimestamp != nil {
		t.Error("a Release whose deletion is held is being deleted")
	}
	h := got.Status.HeldDeletion
	if h == nil || h.Reason != corev1alpha1.HeldByBudget || h.By != "tester" || h.Sequence != 7 || !strings.HasPrefix(h.Digest, "sha256:") || !h.At.Time.Equal(l.clock.Now()) || !strings.Contains(err.Error(), h.Message) {
		t.Errorf("recorded %+v", h)
	}
	if h.Until == nil || !h.Until.Time.Equal(l.clock.Now().Add(10*time.Minute)) {
		t.Errorf("is held until %v, want the end of the window", h.Until)
	}
	if h := l.held(list[0]); h != nil {
		t.Errorf("of one that passed %+v is recorded", h)
	}

	t.Run("one that is being deleted already costs nothing again", func(t *testing.T) {
		if passed, held, _ := l.deletes(l, list[:6]); passed != 6 || held != 0 {
			t.Errorf("%d passed and %d were held", passed, held)
		}
	})
	t.Run("another namespace has a budget of its own", func(t *testing.T) {
		create(t, l, newCluster("other", "edge"))
		if passed, held, _ := l.deletes(l, l.releases("other", "edge", 6)); passed != 5 || held != 1 {
			t.Errorf("%d passed and %d were held, want 5 of 6", passed, held)
		}
	})
	t.Run("the same refusal is not written down again and again", func(t *testing.T) {
		before := get(t, l, &corev1alpha1.Release{}, "team", last.Name)
		l.clock.SetTime(l.clock.Now().Add(time.Minute))
		if err := l.Delete(t.Context(), last); !isHeld(err) {
			t.Errorf("got %v", err)
		}
		if after := get(t, l, &corev1alpha1.Release{}, "team", last.Name); after.ResourceVersion != before.ResourceVersion {
			t.Errorf("written again: %+v", after.Status.HeldDeletion)
		}
	})
	t.Run("when the window is over, the next ones pass", func(t *testing.T) {
		l.clock.SetTime(l.clock.Now().Add(10 * time.Minute))
		if passed, held, _ := l.deletes(l, list[6:]); passed != 6 || held != 18 {
			t.Errorf("%d passed and %d were held, want 6 of 24", passed, held)
		}
	})
}

func TestADeletionOfManyHoldsSomeAndDeletesTheOthers(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	list := l.releases("team", "edge", 20)
	err := l.DeleteAllOf(t.Context(), &corev1alpha1.Release{}, client.InNamespace("team"))
	if !isHeld(err) || !strings.Contains(err.Error(), "15 of 20 deletions are held (edge-") || !strings.Contains(err.Error(), "and 12 more") {
		t.Errorf("got %v", err)
	}
	deleting, held := 0, 0
	for _, r := range list {
		got := get(t, l, &corev1alpha1.Release{}, "team", r.Name)
		switch {
		case got.DeletionTimestamp != nil:
			deleting++
		case got.Status.HeldDeletion != nil:
			held++
		}
	}
	if deleting != 5 || held != 15 {
		t.Errorf("%d are being deleted and %d are recorded as held", deleting, held)
	}
}

func TestWhatIsShortInTwoWaysIsHeldUntilTheLaterWindowEnds(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	list := l.releases("team", "edge", 6)
	create(t, l, newCluster("team", "late"))
	first := l.release("team", "first", "late")
	if err := l.Delete(t.Context(), first); err != nil { // opens the window of the namespace
		t.Fatal(err)
	}
	l.clock.SetTime(l.clock.Now().Add(4 * time.Minute))
	if passed, held, _ := l.deletes(l, list); passed != 4 || held != 2 {
		t.Fatalf("%d passed and %d were held, want what 1 of 5 leaves to the namespace", passed, held)
	}
	if h, want := l.held(list[5]), l.clock.Now().Add(6*time.Minute); h.Until == nil || !h.Until.Time.Equal(want) {
		t.Errorf("short in the namespace alone: until %v, want %v", h.Until, want)
	}
	l.clock.SetTime(l.clock.Now().Add(6 * time.Minute)) // the namespace has a new window
	if passed, held, _ := l.deletes(l, list[4:5]); passed != 1 || held != 0 {
		t.Fatalf("%d passed and %d were held", passed, held)
	}
	more := l.releases("team", "late", 4)
	if passed, held, _ := l.deletes(l, more); passed != 4 || held != 0 {
		t.Fatalf("%d passed and %d were held", passed, held)
	}
	if !isHeld(l.Delete(t.Context(), list[5])) {
		t.Fatal("passed")
	}
	if h, want := l.held(list[5]), l.clock.Now().Add(10*time.Minute); h.Until == nil || !h.Until.Time.Equal(want) {
		t.Errorf("short in both: until %v, want %v, when the later one of them ends", h.Until, want)
	}
}

func TestEachClusterHasABudgetOfItsOwn(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	create(t, l, newCluster("team", "far"))
	l.releases("team", "edge", 40)
	far := l.releases("team", "far", 10)
	passed, held, err := l.deletes(l, far)
	if passed != 5 || held != 5 || !strings.Contains(err.Error(), `5 of at most 5 Releases of Cluster "far"`) {
		t.Errorf("%d passed and %d were held: %v", passed, held, err)
	}
}

func TestDeletionsThatUninstallNothingAreNotCounted(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	if passed, held, _ := l.deletes(l, l.releases("team", "edge", 6)); passed != 5 || held != 1 {
		t.Fatalf("%d passed and %d were held: the budget is not spent", passed, held)
	}
	t.Run("workloads that are kept", func(t *testing.T) {
		r := l.release("team", "kept", "edge", func(r *corev1alpha1.Release) { r.Spec.DeletionPolicy.KeepWorkloads = true })
		if err := l.Delete(t.Context(), r); err != nil {
			t.Error(err)
		}
	})
	t.Run("a Release that was never ordered", func(t *testing.T) {
		r := newRelease("team", "new", "edge")
		create(t, l, r)
		if err := l.Delete(t.Context(), r); err != nil {
			t.Error(err)
		}
	})
	t.Run("a Release whose Cluster does not exist", func(t *testing.T) {
		if err := l.Delete(t.Context(), l.release("team", "lost", "gone")); err != nil {
			t.Error(err)
		}
	})
	t.Run("a dry run", func(t *testing.T) {
		if err := l.Delete(t.Context(), l.release("team", "dry", "edge"), client.DryRunAll); err != nil {
			t.Error(err)
		}
	})
	t.Run("a namespace that is being deleted", func(t *testing.T) {
		l.going["team"] = true
		defer delete(l.going, "team")
		if err := l.Delete(t.Context(), l.release("team", "going", "edge")); err != nil {
			t.Error(err)
		}
	})
	t.Run("a Cluster that goes with its Releases was counted", func(t *testing.T) {
		c := newCluster("team", "pruned")
		c.Spec.DeletionPolicy.PruneReleases = true
		create(t, l, c)
		if err := l.Delete(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := l.Delete(t.Context(), l.release("team", "on-pruned", "pruned")); err != nil {
			t.Error(err)
		}
	})
}

func TestADeletionThatFailsCostsNothing(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	list := l.releases("team", "edge", 5)
	wrong := types.UID("other")
	for range 10 {
		err := l.Delete(t.Context(), list[0], client.Preconditions{UID: &wrong})
		if !apierrors.IsConflict(err) {
			t.Fatalf("got %v, want a conflict", err)
		}
	}
	if passed, held, _ := l.deletes(l, list); passed != 5 || held != 0 {
		t.Errorf("%d passed and %d were held", passed, held)
	}
}

func TestTheGarbageCollectorsDeletionsAreHeld(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	owned := func(r *corev1alpha1.Release) {
		r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "never-there"}}
	}
	r := l.release("team", "restored", "edge", owned)
	err := l.as(collector).Delete(t.Context(), r)
	if !isHeld(err) || !strings.Contains(err.Error(), "an owner in metadata.ownerReferences does not exist") {
		t.Fatalf("got %v", err)
	}
	if h := l.held(r); h == nil || h.Reason != corev1alpha1.HeldByCollector || h.By != collector {
		t.Errorf("recorded %+v", h)
	}
	if err := l.as("system:kube-controller-manager").Delete(t.Context(), r); !isHeld(err) {
		t.Errorf("a controller manager without accounts of its own: %v", err)
	}
	t.Run("under whatever name it runs", func(t *testing.T) {
		background := metav1.DeletePropagationBackground
		uid := r.UID
		if err := l.as("root").Delete(t.Context(), r, client.Preconditions{UID: &uid}, client.PropagationPolicy(background)); !isHeld(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("though no workload hangs on it: the Release itself was restored by somebody", func(t *testing.T) {
		kept := l.release("team", "kept", "edge", owned, func(r *corev1alpha1.Release) { r.Spec.DeletionPolicy.KeepWorkloads = true })
		fresh := newRelease("team", "fresh", "edge")
		owned(fresh)
		create(t, l, fresh)
		for _, r := range []*corev1alpha1.Release{kept, fresh} {
			if err := l.as(collector).Delete(t.Context(), r); !isHeld(err) {
				t.Errorf("%s: got %v", r.Name, err)
			}
			if _, err := l.confirm(r, l.held(r)); err != nil {
				t.Errorf("confirm %s: %v", r.Name, err)
			}
			if err := l.as(collector).Delete(t.Context(), r); err != nil {
				t.Errorf("%s, confirmed: %v", r.Name, err)
			}
		}
	})
	t.Run("in a namespace that is being deleted it is let go, and orphaned", func(t *testing.T) {
		l.going["team"] = true
		defer delete(l.going, "team")
		if err := l.as(collector).Delete(t.Context(), l.release("team", "going", "edge", owned)); err != nil {
			t.Error(err)
		}
	})
	t.Run("a person may delete it", func(t *testing.T) {
		if err := l.Delete(t.Context(), r); err != nil {
			t.Error(err)
		}
	})
}

func TestAClusterThatPrunesIsCountedAsAllItsReleases(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	pruning := func(name string) *corev1alpha1.Cluster {
		c := newCluster("team", name)
		c.Spec.DeletionPolicy.PruneReleases = true
		create(t, l, c)
		return c
	}
	small, large := pruning("small"), pruning("large")
	l.releases("team", "small", 3)
	many := l.releases("team", "large", 6)
	err := l.Delete(t.Context(), large)
	if !isHeld(err) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"0 of at most 5 Releases", "it would delete 6", "the workloads of its 6 Releases go on running", "confirm -n team cluster/large", "waiting does not help"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	h := get(t, l, &corev1alpha1.Cluster{}, "team", "large").Status.HeldDeletion
	if h == nil || h.Reason != corev1alpha1.HeldByBudget || h.Sequence != 7 || h.Until != nil {
		t.Fatalf("recorded %+v", h)
	}
	t.Run("a small one passes, and takes its Releases off the budget", func(t *testing.T) {
		if err := l.Delete(t.Context(), small); err != nil {
			t.Fatal(err)
		}
		if passed, held, _ := l.deletes(l, many[:3]); passed != 2 || held != 1 {
			t.Errorf("%d passed and %d were held, want what 3 of 5 leave", passed, held)
		}
	})
	t.Run("confirming needs the verb on clusters", func(t *testing.T) {
		l.host.deny("confirm clusters")
		if _, err := l.confirm(large, h); !apierrors.IsForbidden(err) {
			t.Errorf("got %v", err)
		}
		delete(l.host.denied, "confirm clusters")
	})
	t.Run("what changed has to be held again before it is confirmed", func(t *testing.T) {
		if _, err := l.confirm(large, h); !apierrors.IsConflict(err) {
			t.Errorf("got %v", err)
		}
		l.clock.SetTime(l.clock.Now().Add(time.Second))
		if err := l.Delete(t.Context(), large); !isHeld(err) {
			t.Fatalf("got %v", err)
		}
		next := get(t, l, &corev1alpha1.Cluster{}, "team", "large").Status.HeldDeletion
		if _, err := l.confirm(large, next); err != nil {
			t.Fatal(err)
		}
		if err := l.Delete(t.Context(), large); err != nil {
			t.Error(err)
		}
	})
	t.Run("one that leaves its Releases is not counted", func(t *testing.T) {
		c := newCluster("team", "leaving")
		create(t, l, c)
		l.releases("team", "leaving", 6)
		if err := l.Delete(t.Context(), c); err != nil {
			t.Error(err)
		}
	})
}

func TestWithoutABudgetOnlyTheGarbageCollectorIsHeld(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t, func(c *apiserver.Config) { c.Options.Budget.Count = 0 })
	l := &ledger{Server: s, Client: newClient(t, s), t: t, clock: clocktesting.NewFakePassiveClock(time.Now())}
	create(t, l, newCluster("team", "edge"))
	if passed, held, _ := l.deletes(l, l.releases("team", "edge", 30)); passed != 30 || held != 0 {
		t.Errorf("%d passed and %d were held", passed, held)
	}
	r := l.release("team", "restored", "edge", func(r *corev1alpha1.Release) {
		r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "never-there"}}
	})
	if err := l.as(collector).Delete(t.Context(), r); !isHeld(err) {
		t.Errorf("got %v", err)
	}
}

func TestBudgetsThatAreRefused(t *testing.T) {
	for name, change := range map[string]func(*apiserver.Budget){
		"a negative count":   func(b *apiserver.Budget) { b.Count = -1 },
		"101 percent":        func(b *apiserver.Budget) { b.Percent = 101 },
		"no window":          func(b *apiserver.Budget) { b.Window = 0 },
		"a window of a week": func(b *apiserver.Budget) { b.Window = 7 * 24 * time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			o := apiserver.NewOptions()
			o.Standalone = true
			if errs := o.Validate(); len(errs) > 0 {
				t.Fatalf("the defaults: %v", errs)
			}
			change(&o.Budget)
			if diff := cmp.Diff(1, len(o.Validate())); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}
