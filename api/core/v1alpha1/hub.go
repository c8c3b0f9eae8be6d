// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HubName is the name of the one Hub that there is.
const HubName = "convoy"

// Hub is what a hub says of itself. There is one, it is not stored, and nobody
// writes it.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Hub struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata; name is always "convoy".
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// status of the hub.
	// +optional
	Status HubStatus `json:"status,omitempty"`
}

// HubStatus tells of the hub. Nothing in it is secret.
type HubStatus struct {
	// hubID names the hub in certificates, orders and owner annotations.
	HubID string `json:"hubID"`
	// version of the program.
	Version string `json:"version"`
	// gatewayURL is where agents dial.
	// +optional
	GatewayURL string `json:"gatewayURL,omitempty"`
	// keys that the hub has loaded: what was rotated since is not among them.
	// +optional
	// +listType=atomic
	Keys []HubKey `json:"keys,omitempty"`
}

// HubKey names one key of the hub.
type HubKey struct {
	// set is the name of the Secret that holds it.
	Set string `json:"set"`
	// id is derived from a hash of the key, and tells nothing of it.
	ID string `json:"id"`
	// old: still accepted, used for nothing new.
	// +optional
	Old bool `json:"old,omitempty"`
	// inUse counts what still needs an old key: Releases whose order it signed, sealed
	// layers that it encrypted, Clusters whose agent has not heard of a newer CA. One
	// that nothing needs can be retired.
	// +optional
	InUse int64 `json:"inUse,omitempty"`
}

// HubList is a list of the one Hub.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type HubList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items of the list.
	Items []Hub `json:"items"`
}

// BackupRequest is the request and the answer of POST hubs/convoy/backup: the next
// pieces of what the hub has stored. Its keys are not among them.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type BackupRequest struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata; name, if given, is the Hub's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// cursor is empty at first, and what the answer before said in next from then on.
	// +optional
	Cursor string `json:"cursor,omitempty"`
	// pieces are part of the answer.
	// +optional
	// +listType=atomic
	Pieces []BackupPiece `json:"pieces,omitempty"`
	// next is part of the answer; empty when these pieces are the last.
	// +optional
	Next string `json:"next,omitempty"`
}

// Kinds of a BackupPiece.
const (
	BackupKey  = "key"  // of etcd, under the hub's prefix
	BackupBlob = "blob" // of the render store, as it lies there
)

// BackupPiece is a key of etcd, or a part of a blob.
type BackupPiece struct {
	// kind: key or blob.
	Kind string `json:"kind"`
	// name within its kind.
	Name string `json:"name"`
	// offset of data in a blob, whose parts follow each other.
	// +optional
	Offset int64 `json:"offset,omitempty"`
	// size of the whole blob.
	// +optional
	Size int64 `json:"size,omitempty"`
	// data, as stored.
	Data []byte `json:"data"`
}

// RestoreRequest is the request and the answer of POST hubs/convoy/restore: it
// writes pieces of a backup, in their order, into a hub that has nothing yet. One
// that was broken off may be begun again with the same backup.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type RestoreRequest struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata; name, if given, is the Hub's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// backup is the digest that names the backup.
	Backup string `json:"backup"`
	// hubID that the backup was taken of; another hub refuses it.
	HubID string `json:"hubID"`
	// pieces to write.
	// +optional
	// +listType=atomic
	Pieces []BackupPiece `json:"pieces,omitempty"`
	// last: these are the last pieces. The hub ends, to be started again on what was
	// restored.
	// +optional
	Last bool `json:"last,omitempty"`
}
