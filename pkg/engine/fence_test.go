// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"testing"
	"time"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// fencedRelease is a Release with some objects, carrying out an order of sequence 1000.
func fencedRelease(rn *Runner, uids ...string) *release {
	r := rn.newRelease("r")
	r.restored = true
	r.order = tunnel.Order{Verb: tunnel.VerbApply, Sequence: 1000, Release: tunnel.ReleaseRef{UID: "r"}}
	for _, uid := range uids {
		id := manifest.Identity{Kind: "ConfigMap", Namespace: "ns", Name: "of-" + uid}
		r.objects[id] = &object{id: id, version: "v1", uid: uid}
	}
	rn.releases["r"] = r
	return r
}

func fenceOf(uids ...string) string {
	entries := []tunnel.InventoryEntry{}
	for _, uid := range uids {
		entries = append(entries, tunnel.InventoryEntry{Kind: "ConfigMap", Namespace: "ns", Name: "of-" + uid, UID: uid})
	}
	return tunnel.FenceOf(entries)
}

func TestARemoveOrderIsRefusedOnlyWhenItIsStale(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		fence        string
		age          time.Duration
		acknowledged string
		verb         tunnel.Verb
		held         tunnel.Verb
		want         error
	}{
		"it is about what is here":                             {fence: fenceOf("a", "b")},
		"it is about what the hub acknowledged last":           {fence: fenceOf("a"), acknowledged: fenceOf("a")},
		"it is about something else":                           {fence: fenceOf("z"), acknowledged: fenceOf("a"), want: ErrInventoryMoved},
		"it is about nothing, and there is something":          {fence: fenceOf(), want: ErrInventoryMoved},
		"the hub was never told of an inventory":               {fence: ""},
		"a removal is under way, and has shrunk what there is": {fence: fenceOf("a", "b", "c"), held: tunnel.VerbRemove},
		"everything is to be let go":                           {fence: fenceOf("z"), verb: tunnel.VerbRelease},
		"it was issued 29 days ago":                            {fence: fenceOf("a", "b"), age: 29 * 24 * time.Hour},
		"it was issued 31 days ago":                            {fence: fenceOf("a", "b"), age: 31 * 24 * time.Hour, want: ErrTooOld},
		"letting go was ordered 31 days ago":                   {age: 31 * 24 * time.Hour, verb: tunnel.VerbRelease},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rn, reports := unstarted(t, now)
			r := fencedRelease(rn, "a", "b")
			r.acknowledged = c.acknowledged
			o := tunnel.Order{
				Verb: tunnel.VerbRemove, Hub: "hub", ClusterUID: "cluster", Sequence: 1001, Release: r.order.Release,
				Fence: c.fence, IssuedAt: now.Add(-c.age),
			}
			if c.verb != "" {
				o.Verb = c.verb
			}
			if c.held != "" {
				r.order.Verb = c.held
			}
			if err := rn.Accept(o, tunnel.Signed{}); !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if c.want == nil {
				if r.order.Sequence != 1001 {
					t.Errorf("sequence %d is held", r.order.Sequence)
				}
				return
			}
			r.report()
			told := (*reports)[len(*reports)-1]
			if told.Refused == nil || told.RefusedSequence != 1001 {
				t.Errorf("refused is %+v", told.Refused)
			}
			if errors.Is(c.want, ErrTooOld) {
				return
			}
			// The next order is about what was just told.
			if told.Inventory == nil || tunnel.FenceOf(told.Inventory) != fenceOf("a", "b") {
				t.Fatalf("told an inventory of %v", told.Inventory)
			}
			rn.Acknowledged("r", told.Counter)
			delete(r.objects, manifest.Identity{Kind: "ConfigMap", Namespace: "ns", Name: "of-b"}) // it moved on again meanwhile
			o.Sequence, o.Fence = 1002, tunnel.FenceOf(told.Inventory)
			if err := rn.Accept(o, tunnel.Signed{}); err != nil {
				t.Errorf("the order that was issued anew is refused too: %v", err)
			}
		})
	}
}

func TestARemoveOrderThatComesBeforeTheStateIsReadIsFencedWhenItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fence string
		held  int64
	}{
		"it is about what was kept":  {fenceOf("a"), 1001},
		"it is about something else": {fenceOf("z"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rn, _ := unstarted(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			o := tunnel.Order{Verb: tunnel.VerbRemove, Hub: "hub", ClusterUID: "cluster", Sequence: 1001, Release: tunnel.ReleaseRef{UID: "r"}, Fence: c.fence}
			if err := rn.Accept(o, tunnel.Signed{}); err != nil {
				t.Fatal(err)
			}
			r := rn.releases["r"]
			r.restore(&Record{UID: "r", Release: o.Release, Order: tunnel.Signed{Payload: []byte("{}")}, Inventory: []Entry{
				{Identity: manifest.Identity{Kind: "ConfigMap", Namespace: "ns", Name: "of-a"}, Version: "v1", UID: "a"},
			}})
			if r.order.Sequence != c.held || len(r.objects) != 1 {
				t.Errorf("sequence %d is held, want %d, of %d objects", r.order.Sequence, c.held, len(r.objects))
			}
			if (r.refusal != nil) != (c.held == 0) {
				t.Errorf("refusal is %v", r.refusal)
			}
		})
	}
}
