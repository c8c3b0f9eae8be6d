// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// inventory is what a report said was applied.
type inventory struct {
	renderRef string
	sequence  int64
	entries   []v1alpha1.InventoryEntry
}

func newInventory(report *tunnel.Report) *inventory {
	list := report.Inventory[:min(len(report.Inventory), maxInventory)]
	out := &inventory{renderRef: clip(report.AppliedRef, maxName), sequence: report.Sequence, entries: make([]v1alpha1.InventoryEntry, len(list))}
	for i, e := range list {
		out.entries[i] = v1alpha1.InventoryEntry{
			Group: clip(e.Group, maxName), Version: clip(e.Version, maxName), Kind: clip(e.Kind, maxName),
			Namespace: clip(e.Namespace, maxName), Name: clip(e.Name, maxName), UID: clip(e.UID, maxName),
			Wave: e.Wave, Digest: clip(e.Digest, maxName), Health: clip(e.Health, maxReason), Orphaned: e.Orphaned,
		}
	}
	return out
}

// writeInventory makes or replaces the ReleaseInventory, in one write, or none
// when it says the same.
func (r *Reporter) writeInventory(ctx context.Context, release *v1alpha1.Release, list *inventory) error {
	key := types.NamespacedName{Namespace: release.Namespace, Name: release.Name}
	current, err := r.options.Inventories.Get(ctx, key)
	if apierrors.IsNotFound(err) {
		current, err = nil, nil
	}
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	if err := r.tellForgotten(ctx, release, current, list); err != nil {
		return err
	}
	if current != nil && (current.DeletionTimestamp != nil || list.isIn(current)) {
		r.metrics.writes.WithLabelValues("inventory", "unchanged").Inc()
		return nil
	}
	// The inventory lies in the same shard as its Release.
	fresh := func() *v1alpha1.ReleaseInventory {
		made := &v1alpha1.ReleaseInventory{}
		if shard, ok := release.Labels[v1alpha1.LabelShard]; ok {
			made.Labels = map[string]string{v1alpha1.LabelShard: shard}
		}
		return made
	}
	_, err = r.options.Inventories.Put(ctx, key, fresh, func(next *v1alpha1.ReleaseInventory) error {
		if !list.isIn(next) {
			next.RenderRef, next.Sequence, next.Entries = list.renderRef, list.sequence, list.entries
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("put: %w", err)
	}
	r.metrics.writes.WithLabelValues("inventory", "written").Inc()
	return nil
}

// isIn says whether an object holds this inventory, or a later one.
func (i *inventory) isIn(object *v1alpha1.ReleaseInventory) bool {
	return object.Sequence > i.sequence || object.RenderRef == i.renderRef && equality.Semantic.DeepEqual(object.Entries, i.entries)
}

// Inventory is what is known to be on the target for a Release; nil when none ever was
// reported. It is not to be changed.
func (r *Reporter) Inventory(ctx context.Context, key types.NamespacedName, uid types.UID) ([]v1alpha1.InventoryEntry, error) {
	r.mu.Lock()
	var held *inventory
	if e := r.entries[uid]; e != nil {
		held = e.inventory
	}
	r.mu.Unlock()
	if held != nil {
		return held.entries, nil // made by newInventory, never nil
	}
	stored, err := r.options.Inventories.Get(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get the inventory of %s: %w", key, err)
	}
	if stored.Entries == nil {
		return []v1alpha1.InventoryEntry{}, nil
	}
	return stored.Entries, nil
}

// Fence is the fence of the inventory that is known of a Release; empty when none ever
// was reported.
func (r *Reporter) Fence(ctx context.Context, key types.NamespacedName, uid types.UID) (string, error) {
	entries, err := r.Inventory(ctx, key, uid)
	if err != nil || entries == nil {
		return "", err
	}
	return fenceOf(entries), nil
}

func fenceOf(entries []v1alpha1.InventoryEntry) string {
	list := make([]tunnel.InventoryEntry, len(entries))
	for i := range entries {
		e := &entries[i]
		list[i] = tunnel.InventoryEntry{Group: e.Group, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name, UID: e.UID}
	}
	return tunnel.FenceOf(list)
}

// DeleteInventory removes the inventory of a Release that goes. One that is not
// there is no error.
func (r *Reporter) DeleteInventory(ctx context.Context, key types.NamespacedName) error {
	if err := r.options.Inventories.Delete(ctx, key, ""); err != nil {
		return fmt.Errorf("delete the inventory of %s: %w", key, err)
	}
	return nil
}
