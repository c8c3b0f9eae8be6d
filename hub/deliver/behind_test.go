// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"crypto/ed25519"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestWhatAnAgentIsAskedToGiveBack(t *testing.T) {
	f := newFixture(t)
	var told [][]string
	f.OnCompared(func(_ types.UID, newer []string) { told = append(told, newer) })
	defer f.run()()
	same, older, newer := f.order("same", layer("a"), nil), f.order("older", layer("a"), nil), f.order("newer", layer("a"), nil)
	dead := f.order("dead", layer("a"), nil)
	if _, err := f.Bury(t.Context(), dead, "c1", Removal()); err != nil {
		t.Fatal(err)
	}
	if f.Compared("c1") {
		t.Error("compared before an agent had a session")
	}
	got := f.Behind("c1", map[string]int64{
		"same": same.Status.Sequence, "older": older.Status.Sequence - 1, "newer": newer.Status.Sequence + 1,
		"gone": 7, "dead": dead.Status.Sequence,
	})
	want := []string{"gone", "newer"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]string{want}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if f.Compared("c1") {
		t.Error("compared before the orders were given back")
	}
	f.Taken("c1", []string{"gone"})
	f.Taken("c2", []string{"newer"})
	if f.Compared("c1") {
		t.Error("compared before all orders were given back")
	}
	f.Taken("c1", []string{"newer"})
	if !f.Compared("c1") {
		t.Error("not compared")
	}
	// The order of another Cluster's Release is none of this one's.
	if diff := cmp.Diff([]string{"same"}, f.Behind("c2", map[string]int64{"same": same.Status.Sequence})); diff != "" {
		t.Errorf("asked of another (-want +got):\n%s", diff)
	}
	// An agent that has nothing is compared at once.
	f.Behind("c3", nil)
	if !f.Compared("c3") {
		t.Error("a new agent is not compared")
	}
}

func TestAnAgentThatGivesNothingBackIsNotWaitedForForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.Behind("c1", map[string]int64{"gone": 7})
		<-time.NewTimer(14 * time.Second).C
		if f.Compared("c1") {
			t.Error("compared after 14 s")
		}
		<-time.NewTimer(2 * time.Second).C
		if !f.Compared("c1") {
			t.Error("not compared after 16 s")
		}
	})
}

func TestOrdersOfAnAcceptedKeyStayListed(t *testing.T) {
	f := newFixture(t)
	r := f.order("web", layer("a"), nil)
	old, ok := f.key.Public().(ed25519.PublicKey)
	if !ok {
		t.Fatal("no Ed25519 key")
	}
	_, f.key, _ = ed25519.GenerateKey(nil) // its error is that of the system's random numbers
	f.restart()
	if _, ok := f.Ordered("web"); ok {
		t.Error("an order of a lost key is taken for ours")
	}
	f.accept = []ed25519.PublicKey{old}
	f.restart()
	if order, ok := f.Ordered("web"); !ok || order.Sequence != r.Status.Sequence {
		t.Errorf("an order of an accepted key is not: %+v", order)
	}
	list, head, _ := f.Current("c1")
	if len(list) != 1 || list[0].Signed.KeyID != tunnel.KeyID(old) || head.KeyID == list[0].Signed.KeyID {
		t.Errorf("%d orders, head of key %s", len(list), head.KeyID)
	}
}

func TestWhatAnAbsentAgentLeavesBehindIsToldBeforeItIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		var mu sync.Mutex // of what follows
		var left []int32
		failing := errors.New("etcd is away")
		f.OnLeft(func(_ context.Context, cluster types.UID, count int32) error {
			mu.Lock()
			defer mu.Unlock()
			if cluster != "c1" {
				t.Errorf("told of %s", cluster)
			}
			left = append(left, count)
			return failing
		})
		defer f.run()()
		for _, name := range []string{"one", "two", "released", "alive"} {
			r := f.order(name, layer("a"), nil)
			verb := tunnel.VerbRemove
			if name == "released" {
				verb = tunnel.VerbRelease // leaves nothing that anybody wanted away
			}
			if _, err := f.Bury(t.Context(), r, "c1", Last{Verb: verb}); err != nil {
				t.Fatal(err)
			}
			if name != "alive" {
				f.gone(r)
			}
		}
		<-time.NewTimer(30*24*time.Hour + 2*time.Hour).C
		synctest.Wait()
		if len(f.keys.names()) != 4 {
			t.Errorf("forgotten although it could not be told: %v", f.keys.names())
		}
		mu.Lock()
		failing, left = nil, nil
		mu.Unlock()
		<-time.NewTimer(2 * time.Hour).C
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff([]int32{2}, left); diff != "" {
			t.Errorf("left behind (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{Prefix + "c1/alive"}, f.keys.names()); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
	})
}
