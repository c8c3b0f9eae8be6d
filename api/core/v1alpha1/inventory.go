// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReleaseInventory lists the objects that were applied for the Release of the
// same name. The hub writes it once for each applied render; it is a copy, the
// agent's own inventory decides what is pruned.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ReleaseInventory struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// renderRef is the digest of the render that this is the inventory of.
	// +optional
	RenderRef string `json:"renderRef,omitempty"`
	// sequence of the order that applied it.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// entries, in apply order; at most 10,000.
	// +optional
	// +listType=atomic
	Entries []InventoryEntry `json:"entries,omitempty"`
}

// InventoryEntry is one object on the target.
type InventoryEntry struct {
	// group of the object; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// version it was applied with; no part of its identity.
	Version string `json:"version"`
	// kind of the object.
	Kind string `json:"kind"`
	// namespace of the object; empty for cluster-scoped kinds.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
	// uid that the target gave it.
	// +optional
	UID string `json:"uid,omitempty"`
	// wave it was applied in.
	// +optional
	Wave int32 `json:"wave,omitempty"`
	// digest of the object's line in the render.
	// +optional
	Digest string `json:"digest,omitempty"`
	// health when this was written; live health is asked of the agent.
	// +optional
	Health string `json:"health,omitempty"`
	// orphaned: left the render and was not pruned.
	// +optional
	Orphaned bool `json:"orphaned,omitempty"`
}

// ReleaseInventoryList is a list of ReleaseInventories.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ReleaseInventoryList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items of the list.
	Items []ReleaseInventory `json:"items"`
}
