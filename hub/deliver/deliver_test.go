// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestASequenceFollowsTheClockAndNeverStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		r := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{UID: "r"}}
		now := time.Now().UnixMilli()
		for last, want := range map[int64]int64{0: now, now - 5: now, now: now + 1, now + 70_000: now + 70_001} {
			order, err := f.Issue(Intent{Release: r, ClusterUID: "c1", Objects: layer("a")})(last)
			if err != nil {
				t.Fatal(err)
			}
			if order.Sequence != want {
				t.Errorf("after %d comes %d, want %d", last, order.Sequence, want)
			}
		}
	})
}

func TestAnOrderSaysWhatTheAgentNeedsForIt(t *testing.T) {
	f := newFixture(t)
	r := f.order("web", layer("a"), layer("b"))
	order, ok := f.Ordered(r.UID)
	if !ok {
		t.Fatal("there is no order")
	}
	equal(t, "requires", []string{tunnel.FeatureApply, tunnel.FeatureSealed, tunnel.FeatureReplace}, order.Requires)
	equal(t, "names", tunnel.ReleaseRef{UID: "web", Namespace: "team", Name: "web"}, order.Release)
}

func TestNothingIsSignedThatNoAgentCouldRead(t *testing.T) {
	f := newFixture(t)
	r := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{UID: "r"}}
	if _, err := f.Issue(Intent{Release: r, ClusterUID: "c1"})(0); !errors.Is(err, tunnel.ErrOrder) {
		t.Errorf("an apply order without a render gave %v", err)
	}
}

func TestEachClusterHasItsOwnOrdersAndMayAskForNothingElse(t *testing.T) {
	f := newFixture(t)
	f.order("web", layer("a"), layer("b"))
	f.order("db", layer("c"), nil)
	equal(t, "orders of c1", map[string]tunnel.Verb{"web": "apply", "db": "apply"}, f.listed("c1"))
	equal(t, "orders of c2", map[string]tunnel.Verb{}, f.listed("c2"))
	for digest, want := range map[string]string{layer("a").Digest: "objects", layer("b").Digest: "sealed", layer("c").Digest: "objects", layer("d").Digest: "no"} {
		got := "no"
		if l, sealed, ok := f.Allowed("c1", digest); ok {
			got = map[bool]string{true: "sealed", false: "objects"}[sealed]
			equal(t, "layer", digest, l.Digest)
		}
		equal(t, "c1 asking for "+digest, want, got)
		if _, _, ok := f.Allowed("c2", digest); ok {
			t.Errorf("c2 may have %s", digest)
		}
	}
	// A newer order takes the old render away.
	f.order("web", layer("d"), nil)
	if _, _, ok := f.Allowed("c1", layer("a").Digest); ok {
		t.Error("a render that is no longer ordered is still given")
	}
}

func TestAChangeIsToldAndAHeadIsRenewedAtHalfItsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.run()()
		_, first, changed := f.Current("c1")
		r := f.order("web", layer("a"), nil)
		<-changed
		_, second, changed := f.Current("c1")
		f.ReleaseChanged(r, r.DeepCopy()) // the same order again: no change
		started := time.Now()
		<-changed
		if waited := time.Since(started); waited < headLife/2 || waited > headLife/2+headCheck {
			t.Errorf("the head was renewed after %s", waited)
		}
		_, third, _ := f.Current("c1")
		if bytes.Equal(first.Signature, second.Signature) || bytes.Equal(second.Signature, third.Signature) {
			t.Error("the head did not change")
		}
	})
}

func TestAnOrderThatCouldNotBeStoredIsNotGivenOut(t *testing.T) {
	f := newFixture(t)
	r := f.order("web", layer("a"), nil)
	f.keys.failing = errors.New("away")
	if _, err := f.Bury(t.Context(), r, "c1", Removal()); err == nil {
		t.Error("no error")
	}
	equal(t, "orders", map[string]tunnel.Verb{"web": "apply"}, f.listed("c1"))
}

func TestOnlyWhatThisHubSignedCounts(t *testing.T) {
	f := newFixture(t)
	r := f.order("web", layer("a"), nil)
	mine := *r.Status.Order
	forge := func(change func(*v1alpha1.OrderStatus)) *v1alpha1.Release {
		out := r.DeepCopy()
		order := mine
		change(&order)
		out.Status.Order = &order
		return out
	}
	for name, forged := range map[string]*v1alpha1.Release{
		"another payload":  forge(func(o *v1alpha1.OrderStatus) { o.Payload += " " }),
		"another key":      forge(func(o *v1alpha1.OrderStatus) { o.KeyID = "x" }),
		"no signature":     forge(func(o *v1alpha1.OrderStatus) { o.Signature = "" }),
		"another sequence": forge(func(o *v1alpha1.OrderStatus) { o.Sequence++ }),
		"no order":         {ObjectMeta: r.ObjectMeta},
	} {
		f.ReleaseChanged(r, forged)
		if _, ok := f.Ordered(r.UID); ok {
			t.Errorf("%s counts as an order", name)
		}
		equal(t, name, map[string]tunnel.Verb{}, f.listed("c1"))
		f.ReleaseChanged(forged, r)
		equal(t, "put right", map[string]tunnel.Verb{"web": "apply"}, f.listed("c1"))
	}
	// An order that is right, but stands in the status of another Release.
	other := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{UID: "other"}, Status: v1alpha1.ReleaseStatus{Order: &mine}}
	f.ReleaseChanged(nil, other)
	if _, ok := f.Ordered("other"); ok {
		t.Error("an order of another Release counts")
	}
}

func TestStoredOrdersThatAreNotOursAreLeftAloneAndIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		r := f.order("web", layer("a"), nil)
		if _, err := f.Bury(t.Context(), r, "c1", Removal()); err != nil {
			t.Fatal(err)
		}
		value := f.keys.values[Prefix+"c1/web"]
		var signed tunnel.Signed
		if err := json.Unmarshal(value, &signed); err != nil {
			t.Fatal(err)
		}
		signed.Signature[0] ^= 1
		forged, err := json.Marshal(signed)
		if err != nil {
			t.Fatal(err)
		}
		f.keys.values = map[string][]byte{Prefix + "c1/web": forged, Prefix + "c2/web": value, Prefix + "c1/x": []byte("{")}
		f.releases = releases{}
		f.restart()
		defer f.run()()
		equal(t, "orders of c1", map[string]tunnel.Verb{}, f.listed("c1"))
		equal(t, "orders of c2", map[string]tunnel.Verb{}, f.listed("c2"))
		equal(t, "keys", 3, len(f.keys.names()))
	})
}
