// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

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
	ctx = genericapirequest.WithNamespace(ctx, release.Namespace)
	existing, err := r.options.Inventories.Get(ctx, release.Name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		fresh := &v1alpha1.ReleaseInventory{
			ObjectMeta: metav1.ObjectMeta{Namespace: release.Namespace, Name: release.Name},
			RenderRef:  list.renderRef, Sequence: list.sequence, Entries: list.entries,
		}
		if _, err := r.options.Inventories.Create(ctx, fresh, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create: %w", err)
		}
		r.metrics.writes.WithLabelValues("inventory", "written").Inc()
		return nil
	}
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	current, ok := existing.(*v1alpha1.ReleaseInventory)
	if !ok {
		return fmt.Errorf("the store holds a %T", existing)
	}
	if current.DeletionTimestamp != nil {
		return nil
	}
	same := func(old *v1alpha1.ReleaseInventory) bool {
		return old.Sequence > list.sequence ||
			old.RenderRef == list.renderRef && equality.Semantic.DeepEqual(old.Entries, list.entries)
	}
	if same(current) {
		r.metrics.writes.WithLabelValues("inventory", "unchanged").Inc()
		return nil
	}
	key := types.NamespacedName{Namespace: release.Namespace, Name: release.Name}
	_, err = compareAndSwap(ctx, r.options.Inventories, key, current.UID, func(old, next *v1alpha1.ReleaseInventory) (bool, error) {
		next.RenderRef, next.Sequence, next.Entries = list.renderRef, list.sequence, list.entries
		return !same(old), nil
	})
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	r.metrics.writes.WithLabelValues("inventory", "written").Inc()
	return nil
}

// DeleteInventory removes the inventory of a Release that goes. One that is not
// there is no error.
func (r *Reporter) DeleteInventory(ctx context.Context, key types.NamespacedName) error {
	ctx = genericapirequest.WithNamespace(ctx, key.Namespace)
	_, _, err := r.options.Inventories.Delete(ctx, key.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the inventory of %s: %w", key, err)
	}
	return nil
}
