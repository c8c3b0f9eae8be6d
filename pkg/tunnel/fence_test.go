// SPDX-License-Identifier: Apache-2.0

package tunnel

import "testing"

func TestTheFenceOfAnInventory(t *testing.T) {
	one := InventoryEntry{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", UID: "1"}
	two := InventoryEntry{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "b", UID: "2"}
	fence := FenceOf([]InventoryEntry{one, two})
	if !ValidDigest(fence) {
		t.Fatalf("%q is no digest", fence)
	}
	change := func(edit func(e *InventoryEntry)) []InventoryEntry {
		other := two
		edit(&other)
		return []InventoryEntry{one, other}
	}
	for name, c := range map[string]struct {
		entries []InventoryEntry
		same    bool
	}{
		"is the same in another order":                {[]InventoryEntry{two, one}, true},
		"is the same whatever version is served":      {change(func(e *InventoryEntry) { e.Version = "v2" }), true},
		"is the same whatever wave, health or digest": {change(func(e *InventoryEntry) { e.Wave, e.Health, e.Digest, e.Orphaned = 3, "Healthy", "x", true }), true},
		"differs when an object was made anew":        {change(func(e *InventoryEntry) { e.UID = "3" }), false},
		"differs when an object has another name":     {change(func(e *InventoryEntry) { e.Name = "c" }), false},
		"differs when an object lies elsewhere":       {change(func(e *InventoryEntry) { e.Namespace = "other" }), false},
		"differs when text moves between the fields":  {change(func(e *InventoryEntry) { e.Namespace, e.Name = "sho", "pb" }), false},
		"differs when an object is missing":           {[]InventoryEntry{one}, false},
		"differs when nothing is left":                {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FenceOf(c.entries); (got == fence) != c.same {
				t.Errorf("fence %s, of the first %s, want the same: %v", got, fence, c.same)
			}
		})
	}
}
