// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestADeletedReleaseLeavesItsLastOrderUntilTheAgentIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		var told []types.UID
		f.OnDone(func(uid types.UID) { told = append(told, uid) })
		stop := f.run()
		r := f.order("web", layer("a"), nil)
		buried := f.bury(t, r, Removal())
		if buried.Sequence <= r.Status.Sequence {
			t.Errorf("the last order has sequence %d after %d", buried.Sequence, r.Status.Sequence)
		}
		equal(t, "orders", map[string]tunnel.Verb{"web": "remove"}, f.listed("c1"))
		equal(t, "keys", []string{Prefix + "c1/web"}, f.keys.names())
		again, err := f.Bury(t.Context(), r, "c1", Removal())
		if err != nil || again.Sequence != buried.Sequence {
			t.Errorf("a second burial gave %d, %v", again.Sequence, err)
		}
		if _, _, ok := f.Allowed("c1", layer("a").Digest); ok {
			t.Error("the render is still given")
		}

		// The hub restarts; the order is still there.
		stop()
		f.restart()
		f.OnDone(func(uid types.UID) { told = append(told, uid) })
		defer f.run()()
		equal(t, "orders after a restart", map[string]tunnel.Verb{"web": "remove"}, f.listed("c1"))
		equal(t, "waiting", 1, f.Waiting("c1"))

		// Another cluster, or an older order, is not believed.
		done := func(cluster types.UID, sequence int64) {
			if err := f.Done(t.Context(), cluster, "web", sequence); err != nil {
				t.Error(err)
			}
		}
		done("c2", buried.Sequence)
		done("c1", r.Status.Sequence)
		equal(t, "waiting", 1, f.Waiting("c1"))

		// Done, but the Release is still there: its apply order must not come back.
		done("c1", buried.Sequence)
		equal(t, "told", []types.UID{"web"}, told)
		equal(t, "orders while the Release is still there", map[string]tunnel.Verb{"web": "remove"}, f.listed("c1"))
		equal(t, "waiting", 0, f.Waiting("c1"))
		f.gone(r)
		synctest.Wait()
		equal(t, "orders at the end", map[string]tunnel.Verb{}, f.listed("c1"))
		equal(t, "keys at the end", []string{}, f.keys.names())
	})
}

func TestAnApplyOrderNeverComesBackBetweenTwoLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.run()()
		r := f.order("web", layer("a"), nil)
		buried := f.bury(t, r, Removal())
		// Gone from the cache, which has not told of it yet.
		delete(f.releases, r.UID)
		if err := f.Done(t.Context(), "c1", "web", buried.Sequence); err != nil {
			t.Fatal(err)
		}
		equal(t, "orders", map[string]tunnel.Verb{"web": "remove"}, f.listed("c1"))
		f.ReleaseChanged(r, nil)
		equal(t, "orders", map[string]tunnel.Verb{}, f.listed("c1"))
		synctest.Wait()
		equal(t, "keys", []string{}, f.keys.names())
	})
}

func TestAnAbsentAgentFindsTheRemoveOrderWhenTheReleaseIsLongGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.run()()
		r := f.order("web", layer("a"), nil)
		buried := f.bury(t, r, Removal())
		f.gone(r)
		<-time.NewTimer(29 * 24 * time.Hour).C
		equal(t, "orders after 29 days", map[string]tunnel.Verb{"web": "remove"}, f.listed("c1"))
		if err := f.Done(t.Context(), "c1", "web", buried.Sequence); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		equal(t, "keys", []string{}, f.keys.names())
	})
}

func TestAfterThirtyDaysTheAgentIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.run()()
		r := f.order("web", layer("a"), nil)
		if _, err := f.Bury(t.Context(), r, "c1", Removal()); err != nil {
			t.Fatal(err)
		}
		f.gone(r)
		<-time.NewTimer(31 * 24 * time.Hour).C
		synctest.Wait()
		equal(t, "keys", []string{}, f.keys.names())
		equal(t, "orders", map[string]tunnel.Verb{}, f.listed("c1"))
	})
}

func TestKeepingTheWorkloadsAfterAllIsANewerOrder(t *testing.T) {
	f := newFixture(t)
	r := f.order("web", layer("a"), nil)
	remove, err := f.Bury(t.Context(), r, "c1", Removal())
	if err != nil {
		t.Fatal(err)
	}
	release, err := f.Bury(t.Context(), r, "c1", LettingGo())
	if err != nil {
		t.Fatal(err)
	}
	if release.Sequence <= remove.Sequence {
		t.Errorf("sequence %d after %d", release.Sequence, remove.Sequence)
	}
	equal(t, "orders", map[string]tunnel.Verb{"web": "release"}, f.listed("c1"))
}

func TestAReleaseThatWasNeverOrderedHasNoLastOrder(t *testing.T) {
	f := newFixture(t)
	r := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{UID: "r"}}
	if _, err := f.Bury(t.Context(), r, "c1", Removal()); !errors.Is(err, ErrNothingOrdered) {
		t.Errorf("got %v, want ErrNothingOrdered", err)
	}
	equal(t, "keys", []string{}, f.keys.names())
}

func TestADeletedClusterTakesItsOrdersWithIt(t *testing.T) {
	f := newFixture(t)
	r := f.order("web", layer("a"), nil)
	if _, err := f.Bury(t.Context(), r, "c1", Removal()); err != nil {
		t.Fatal(err)
	}
	if err := f.Forget(t.Context(), "c1"); err != nil {
		t.Fatal(err)
	}
	equal(t, "keys", []string{}, f.keys.names())
	if _, ok := f.Buried("web"); ok {
		t.Error("the last order is still there")
	}
}
