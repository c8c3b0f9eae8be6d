// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestARemoveOrderThatAnAgentRefusesIsIssuedAnew(t *testing.T) {
	object := func(uid string) []tunnel.InventoryEntry {
		return []tunnel.InventoryEntry{{Kind: "ConfigMap", Namespace: "team", Name: "a", UID: uid}}
	}
	known := Removal()
	known.Fence = tunnel.FenceOf(object("1"))
	known.ServiceAccount, known.Allowed = "team:deployer", []string{"Namespace"}
	for name, c := range map[string]struct {
		last      Last
		gone      bool // the Release
		cluster   types.UID
		older     bool // it is about an older order
		after     time.Duration
		inventory []tunnel.InventoryEntry
		want      string // the fence of the new order, "" for none
	}{
		"about the inventory that there is now":                      {last: known, cluster: "c1", inventory: object("2"), want: tunnel.FenceOf(object("2"))},
		"though its Release is gone":                                 {last: known, gone: true, cluster: "c1", inventory: object("2"), want: tunnel.FenceOf(object("2"))},
		"about nothing, if that is what is left":                     {last: known, cluster: "c1", inventory: []tunnel.InventoryEntry{}, want: tunnel.FenceOf(nil)},
		"not for the same inventory: it was refused for a reason":    {last: known, cluster: "c1", inventory: object("1")},
		"not for another cluster":                                    {last: known, cluster: "c2", inventory: object("2")},
		"not for an order before it":                                 {last: known, cluster: "c1", older: true, inventory: object("2")},
		"not without an inventory, a moment later":                   {last: known, cluster: "c1"},
		"when it has become old, and its Release waits for it":       {last: known, cluster: "c1", after: 31 * 24 * time.Hour, want: known.Fence},
		"not when it has become old, and its Release is gone":        {last: known, gone: true, cluster: "c1", after: 25 * time.Hour},
		"not when it lets go: that is about no inventory":            {last: LettingGo(), cluster: "c1", inventory: object("2")},
		"though it was about none, since there was none that it had": {last: Removal(), cluster: "c1", inventory: object("2"), want: tunnel.FenceOf(object("2"))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				defer f.run()()
				r := f.order("web", layer("a"), nil)
				buried := f.bury(t, r, c.last)
				if c.gone {
					f.gone(r)
				}
				<-time.After(c.after)
				about := buried.Sequence
				if c.older {
					about--
				}
				if err := f.Refused(t.Context(), "c1", "other", about, c.inventory); err != nil {
					t.Fatal(err)
				}
				if err := f.Refused(t.Context(), c.cluster, "web", about, c.inventory); err != nil {
					t.Fatal(err)
				}
				now, ok := f.Buried("web")
				switch {
				case !ok:
					t.Fatal("the last order is gone")
				case c.want == "":
					if diff := cmp.Diff(buried.Signed, now.Signed); diff != "" {
						t.Errorf("another order (-want +got):\n%s", diff)
					}
					return
				case now.Sequence <= buried.Sequence:
					t.Fatalf("sequence %d after %d", now.Sequence, buried.Sequence)
				}
				// It is what is listed, says what the one before said, and outlives the hub.
				equal(t, "orders", map[string]tunnel.Verb{"web": "remove"}, f.listed("c1"))
				want := c.last
				want.Fence = c.want
				order, err := tunnel.ParseOrder(now.Signed.Payload)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, lastOf(order)); diff != "" || !order.IssuedAt.Equal(time.Now()) {
					t.Errorf("issued at %s; order (-want +got):\n%s", order.IssuedAt, diff)
				}
				equal(t, "keys", []string{Prefix + "c1/web"}, f.keys.names())
			})
		})
	}
}

func TestALastOrderChangesWithWhatItIsToSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.run()()
		r := f.order("web", layer("a"), nil)
		first, err := f.Bury(t.Context(), r, "c1", Last{Verb: tunnel.VerbRemove, ServiceAccount: "team:gone", Fence: "x"})
		if err != nil {
			t.Fatal(err)
		}
		order, err := tunnel.ParseOrder(first.Signed.Payload)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{tunnel.FeatureRemove, tunnel.FeatureImpersonate}, order.Requires); diff != "" {
			t.Errorf("features (-want +got):\n%s", diff)
		}
		// Another inventory alone is no reason: the agent says so if it is one.
		same, err := f.Bury(t.Context(), r, "c1", Last{Verb: tunnel.VerbRemove, ServiceAccount: "team:gone", Fence: "y"})
		if err != nil || same.Sequence != first.Sequence {
			t.Errorf("sequence %d after %d, %v", same.Sequence, first.Sequence, err)
		}
		other, err := f.Bury(t.Context(), r, "c1", Last{Verb: tunnel.VerbRemove, ServiceAccount: "team:deployer"})
		if err != nil || other.Sequence <= first.Sequence {
			t.Errorf("with another account sequence %d after %d, %v", other.Sequence, first.Sequence, err)
		}
		skip := []tunnel.HookAction{{Hook: "Job/team/farewell", Run: "9-1", Action: "skip"}}
		acting := Last{Verb: tunnel.VerbRemove, ServiceAccount: "team:deployer", Fence: "z", Actions: skip}
		acts, err := f.Bury(t.Context(), r, "c1", acting)
		if err != nil || acts.Sequence <= other.Sequence || f.LastOrder(r.UID) != acts.Sequence {
			t.Errorf("with an action sequence %d after %d, %v", acts.Sequence, other.Sequence, err)
		}
		if order, err = tunnel.ParseOrder(acts.Signed.Payload); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{tunnel.FeatureRemove, tunnel.FeatureImpersonate, tunnel.FeatureHooks}, order.Requires); diff != "" {
			t.Errorf("features (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(skip, order.Actions); diff != "" || order.Fence != "z" {
			t.Errorf("fence %q, actions (-want +got):\n%s", order.Fence, diff)
		}
		if again, err := f.Bury(t.Context(), r, "c1", acting); err != nil || again.Sequence != acts.Sequence {
			t.Errorf("the same once more: sequence %d after %d, %v", again.Sequence, acts.Sequence, err)
		}
	})
}

func TestALastOrderIsMadeByOneAtATime(t *testing.T) {
	f := newFixture(t)
	r := f.order("web", layer("a"), nil)
	finish, err := f.claim("web")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Bury(t.Context(), r, "c1", Removal()); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v", err)
	}
	if err := f.Refused(t.Context(), "c1", "web", 1, nil); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v", err)
	}
	finish()
	if _, err := f.Bury(t.Context(), r, "c1", Removal()); err != nil {
		t.Error(err)
	}
}
