// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Release is one application, rendered from one source, on one Cluster.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Release struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what to deploy, from where, to which cluster.
	Spec ReleaseSpec `json:"spec"`
	// status says how far that has come. Written by the hub alone.
	// +optional
	Status ReleaseStatus `json:"status,omitempty"`
}

// ReleaseSpec is what an application team writes. All references are by name in
// the Release's namespace.
type ReleaseSpec struct {
	// clusterRef names the target Cluster. Immutable. The Cluster may be created later.
	ClusterRef ClusterReference `json:"clusterRef"`
	// source names the object that says where the content is.
	Source SourceReference `json:"source"`
	// content says what of the source to deploy.
	// +optional
	Content ReleaseContent `json:"content,omitempty"`
	// targetNamespace is where namespaced objects go that name no namespace; default:
	// the Release's own namespace. Created on the target when it is missing, and never
	// pruned. Changing it moves what was applied there.
	// +optional
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// mutations change the objects of the render, in order, before they are stored. At
	// most 64.
	// +optional
	// +listType=atomic
	Mutations []Mutation `json:"mutations,omitempty"`
	// images says what becomes of the images of containers.
	// +optional
	Images ReleaseImages `json:"images,omitempty"`
	// syncPolicy says when and how a new render is applied.
	// +optional
	SyncPolicy SyncPolicy `json:"syncPolicy,omitempty"`
	// clusterWave orders the Releases of one Cluster: this one is not applied while one
	// of a lower wave there is not applied and healthy at its current generation. From
	// -1000 to 1000, default 0.
	// +optional
	ClusterWave int32 `json:"clusterWave,omitempty"`
	// dependsOn names Releases, whatever their Cluster, that have to be applied and
	// healthy at their current generation before this one is applied, each time. At
	// most 16; a circle is refused.
	// +optional
	// +listType=map
	// +listMapKey=name
	DependsOn []ReleaseReference `json:"dependsOn,omitempty"`
	// suspend: nothing new is rendered or applied, and drift is reported, not repaired,
	// until it is false again. What runs stays.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// serviceAccountName is the account on the target that every call for this Release
	// is made as: a name in the target namespace, or <namespace>:<name>. Empty: the
	// agent's own.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// drift says which differences are none.
	// +optional
	Drift DriftPolicy `json:"drift,omitempty"`
	// health says by which rules health is judged.
	// +optional
	Health HealthPolicy `json:"health,omitempty"`
	// lifecycle are hooks that run around syncs and the removal, beside those that
	// objects of the render are by annotation.
	// +optional
	Lifecycle Lifecycle `json:"lifecycle,omitempty"`
	// deletionPolicy says what a deletion of this Release does on the target.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ReleaseReference names a Release of the same namespace.
type ReleaseReference struct {
	// name of the Release.
	Name string `json:"name"`
}

// ClusterReference names a Cluster of the same namespace.
type ClusterReference struct {
	// name of the Cluster.
	Name string `json:"name"`
}

// SourceReference names a source of the same namespace.
type SourceReference struct {
	// kind of the source: GitRepository, HelmRegistry or OCIRegistry.
	Kind string `json:"kind"`
	// name of the source.
	Name string `json:"name"`
	// revision, if set, is used instead of what the source's ref says: of a
	// GitRepository a commit (40 hexadecimal digits), a tag, a branch or a full ref; of
	// a HelmRegistry a version or range; of an OCIRegistry a tag or sha256:<hex>.
	// +optional
	Revision string `json:"revision,omitempty"`
}

// ConflictPolicy says what happens to a field that another manager owns and
// that convoy never applied before.
type ConflictPolicy string

// ImmutablePolicy says what happens when a change touches an immutable field.
type ImmutablePolicy string

// Policies of a sync.
const (
	ConflictsFail    ConflictPolicy  = "Fail"
	ConflictsForce   ConflictPolicy  = "Force"
	ImmutableReport  ImmutablePolicy = "Report"
	ImmutableReplace ImmutablePolicy = "Replace"
)

// SyncPolicy says when and how a render is applied.
type SyncPolicy struct {
	// automatic: apply new renders and repair drift without being asked; default
	// true. When false, renders are made and stored, applied only on a sync
	// request, and drift is reported, not repaired.
	// +optional
	Automatic *bool `json:"automatic,omitempty"`
	// interval after a reconcile at which the next comes without an event; default
	// 5m, at least 10s, at most 24h.
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// timeout is the deadline of a wave and of the operation's waits; default 5m,
	// at least 1s, at most 24h.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// conflicts: Fail (default) or Force, for fields of other managers that were
	// never applied from here. Repair always forces the fields of the render.
	// +optional
	Conflicts ConflictPolicy `json:"conflicts,omitempty"`
	// immutable: Report (default) or Replace (delete and create again).
	// +optional
	Immutable ImmutablePolicy `json:"immutable,omitempty"`
	// prune says what happens to objects that a new render no longer has.
	// +optional
	Prune PrunePolicy `json:"prune,omitempty"`
	// deletionBudget bounds what one sync may delete without being confirmed.
	// +optional
	DeletionBudget *DeletionBudget `json:"deletionBudget,omitempty"`
	// retry says how an operation that failed is tried again.
	// +optional
	Retry RetryPolicy `json:"retry,omitempty"`
}

// DeletionBudget bounds the deletions of one sync: the higher of both holds. With more
// to delete the sync waits, before it deletes anything, until it is confirmed.
type DeletionBudget struct {
	// count of objects; default 20.
	// +optional
	Count *int32 `json:"count,omitempty"`
	// percent of the objects of the last inventory; default 50.
	// +optional
	Percent *int32 `json:"percent,omitempty"`
}

// RetryPolicy says how an operation that failed is tried again with the same render. A
// newer render, and a sync request, are never held up by it.
type RetryPolicy struct {
	// limit of attempts after the first; unset: no limit, 0: none.
	// +optional
	Limit *int32 `json:"limit,omitempty"`
	// minimum pause before the second attempt, doubled with each; default 2s, at least 1s.
	// +optional
	Minimum *metav1.Duration `json:"minimum,omitempty"`
	// maximum pause; default 10m, at most 24h.
	// +optional
	Maximum *metav1.Duration `json:"maximum,omitempty"`
}

// PrunePolicy says what happens to objects that left the render.
type PrunePolicy struct {
	// orphaned: delete, after the last wave, the objects of the last inventory that
	// the new render no longer has; default true. When false they stay and are
	// listed as orphaned.
	// +optional
	Orphaned *bool `json:"orphaned,omitempty"`
	// allowEmpty: a source that has no objects (any more) is a render of nothing, and
	// prunes all; default false: it is an error, and what runs is kept.
	// +optional
	AllowEmpty bool `json:"allowEmpty,omitempty"`
	// allowed are kinds that are kept unless they are named here, since with one goes
	// more than itself: Namespace, CustomResourceDefinition, PersistentVolumeClaim,
	// PersistentVolume, VolumeSnapshot, VolumeSnapshotContent. They may then be deleted by
	// a prune and by the removal of the Release.
	// +optional
	// +listType=set
	Allowed []string `json:"allowed,omitempty"`
	// propagation of deletions to dependents: Background (default), Foreground, Orphan.
	// +optional
	Propagation metav1.DeletionPropagation `json:"propagation,omitempty"`
}

// DeletionPolicy says what deleting a Release does on the target.
type DeletionPolicy struct {
	// keepWorkloads: leave everything that was applied, unmarked; default false.
	// +optional
	KeepWorkloads bool `json:"keepWorkloads,omitempty"`
	// blockOnClusterUnreachable: stay, being deleted, until the cluster is back and
	// the objects are gone; default false: the Release goes and the removal waits
	// for the cluster. Setting this to false, or keepWorkloads to true, lets go.
	// +optional
	BlockOnClusterUnreachable bool `json:"blockOnClusterUnreachable,omitempty"`
}

// ReleaseList is a list of Releases.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ReleaseList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items of the list.
	Items []Release `json:"items"`
}

// SyncRequest is the request and the answer of POST releases/NAME/sync.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type SyncRequest struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata; name, if given, is the Release's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// force: fetch, render and apply again although nothing changed.
	// +optional
	Force bool `json:"force,omitempty"`
	// confirmDeletions: carry out the deletions that status.heldPrune names by sequence
	// and digest, and no others. It needs the verb confirm on releases, and holds for an
	// hour.
	// +optional
	ConfirmDeletions *DeletionConfirmation `json:"confirmDeletions,omitempty"`
	// requestedAt is part of the answer: the value that the sync annotation now
	// has. The request is done when status.lastSyncRequest shows it.
	// +optional
	RequestedAt string `json:"requestedAt,omitempty"`
}

// DeletionConfirmation names what is confirmed.
type DeletionConfirmation struct {
	// sequence of status.heldPrune.
	Sequence int64 `json:"sequence"`
	// digest of status.heldPrune.
	Digest string `json:"digest"`
}

// ConfirmRequest is the request and the answer of POST releases/NAME/confirm, and of
// clusters/NAME/confirm: a deletion that was held may be asked for once more within
// the hour. It needs the verb confirm on releases, or clusters. A newer order, and a
// restart of the hub, end it.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ConfirmRequest struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata; name, if given, is that of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// sequence of status.heldDeletion.
	Sequence int64 `json:"sequence"`
	// digest of status.heldDeletion.
	Digest string `json:"digest"`
	// expiresAt is part of the answer.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
}
