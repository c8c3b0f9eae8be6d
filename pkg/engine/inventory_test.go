// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"testing"
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

// settledRelease is a Release whose operation has ended and whose inventory was not told.
func settledRelease(t *testing.T, rn *Runner) *release {
	t.Helper()
	r := rn.newRelease("r")
	r.settled, r.inventoryNew = true, true
	rn.releases["r"] = r
	return r
}

func TestAnInventoryThatHasBecomeEmptyIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*release)
		told   bool
	}{
		"a render without objects was applied":        {func(r *release) { r.applied = &Render{Objects: tunnel.Layer{Digest: "sha256:0a"}} }, true},
		"an order failed before there was any object": {func(*release) {}, false},
		"a removal was carried out":                   {func(r *release) { r.applied, r.done = &Render{}, true }, false},
		"it is still being applied":                   {func(r *release) { r.applied, r.settled = &Render{}, false }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rn, reports := unstarted(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			r := settledRelease(t, rn)
			c.change(r)
			r.report()
			if len(*reports) != 1 {
				t.Fatalf("%d reports", len(*reports))
			}
			// What the hub reads of it.
			raw, err := json.Marshal((*reports)[0])
			if err != nil {
				t.Fatal(err)
			}
			var got tunnel.Report
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
			if (got.Inventory != nil) != c.told || len(got.Inventory) > 0 {
				t.Errorf("told an inventory of %v, want one: %v", got.Inventory, c.told)
			}
			rn.Acknowledged("r", got.Counter)
			if r.inventoryNew == c.told {
				t.Errorf("to be told again once acknowledged: %v", r.inventoryNew)
			}
		})
	}
}
