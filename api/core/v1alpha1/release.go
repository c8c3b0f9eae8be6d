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
	// deletionPolicy says what a deletion of this Release does on the target.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
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

// ReleaseStatus is of constant size, whatever the size of the render.
type ReleaseStatus struct {
	// observedGeneration is the generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready, Rendered, Applied, InSync, Healthy.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// sourceRevision that the current render was made of, as in main@sha1:<commit>.
	// +optional
	SourceRevision string `json:"sourceRevision,omitempty"`
	// inputsHash of the current render. Unchanged inputs keep the render.
	// +optional
	InputsHash string `json:"inputsHash,omitempty"`
	// renderRef is the digest of the current render: sha256:<hex>.
	// +optional
	RenderRef string `json:"renderRef,omitempty"`
	// appliedRef is the digest of the render that was last applied in full.
	// +optional
	AppliedRef string `json:"appliedRef,omitempty"`
	// render describes the current render's two layers as stored.
	// +optional
	Render *RenderStatus `json:"render,omitempty"`
	// sequence of the current order.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// order is the current order as it was signed and sent.
	// +optional
	Order *OrderStatus `json:"order,omitempty"`
	// objects counts what the agent last reported.
	// +optional
	Objects ObjectCounts `json:"objects,omitempty"`
	// exceptions are the objects that are not applied, healthy and in sync, worst
	// first, at most 64.
	// +optional
	// +listType=atomic
	Exceptions []ObjectException `json:"exceptions,omitempty"`
	// moreExceptions counts those that did not fit.
	// +optional
	MoreExceptions int32 `json:"moreExceptions,omitempty"`
	// lastOperation is the sync, heal or removal that ran last.
	// +optional
	LastOperation *Operation `json:"lastOperation,omitempty"`
	// history of applied renders, newest first, at most 10.
	// +optional
	// +listType=atomic
	History []HistoryEntry `json:"history,omitempty"`
	// lastSyncRequest is the value of the sync annotation last acted on.
	// +optional
	LastSyncRequest string `json:"lastSyncRequest,omitempty"`
	// lastForceRequest is the value of the force annotation last acted on.
	// +optional
	LastForceRequest string `json:"lastForceRequest,omitempty"`
	// checkedSecrets are the references to Secrets whose use was checked for the user
	// who wrote them. The hub reads no other.
	// +optional
	// +listType=set
	CheckedSecrets []string `json:"checkedSecrets,omitempty"`
	// adopted is set while the Release runs an order that this hub had lost and the
	// agent gave back.
	// +optional
	Adopted *AdoptedOrder `json:"adopted,omitempty"`
	// heldDeletion is the last deletion that was refused and can be confirmed.
	// +optional
	HeldDeletion *HeldDeletion `json:"heldDeletion,omitempty"`
	// lastReportedAt is when the agent's state was last recorded here. It moves
	// only when something else does: the live age is the session's.
	// +optional
	LastReportedAt *metav1.Time `json:"lastReportedAt,omitempty"`
}

// RenderStatus describes a stored render.
type RenderStatus struct {
	// objects layer: its digest is renderRef.
	Objects LayerReference `json:"objects"`
	// sealed layer: the Secret values, encrypted.
	// +optional
	Sealed LayerReference `json:"sealed,omitzero"`
	// count of objects.
	Count int32 `json:"count"`
	// renderer is the version that made it: provenance, never a key.
	// +optional
	Renderer string `json:"renderer,omitempty"`
	// targetNamespace that it was made for.
	// +optional
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// provenance: what it was made of.
	// +optional
	Provenance *Provenance `json:"provenance,omitempty"`
	// reads are the facts that the render really read, as in cluster.region or
	// capabilities.api:monitoring.coreos.com/v1: inputsHash is over these and no others.
	// At most 128; a class with more is named whole, as in cluster.*.
	// +optional
	// +listType=atomic
	Reads []string `json:"reads,omitempty"`
}

// LayerReference points at a blob of the render store.
type LayerReference struct {
	// digest: sha256:<hex> of the blob as it is on the wire.
	Digest string `json:"digest"`
	// size of it in bytes.
	Size int64 `json:"size"`
}

// OrderStatus is a signed order.
type OrderStatus struct {
	// sequence: greater means newer. max(last + 1, milliseconds of issue).
	Sequence int64 `json:"sequence"`
	// payload is the order in JSON, byte for byte as signed.
	Payload string `json:"payload"`
	// signature: Ed25519, standard base64.
	Signature string `json:"signature"`
	// keyID of the key that signed.
	KeyID string `json:"keyID"`
}

// ObjectCounts counts the objects of a Release.
type ObjectCounts struct {
	// total in the render.
	// +optional
	Total int32 `json:"total,omitempty"`
	// applied at the current render.
	// +optional
	Applied int32 `json:"applied,omitempty"`
	// healthy now.
	// +optional
	Healthy int32 `json:"healthy,omitempty"`
	// drifted now.
	// +optional
	Drifted int32 `json:"drifted,omitempty"`
	// failed: rejected, conflicting or not applicable.
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// orphaned: left the render and were not pruned.
	// +optional
	Orphaned int32 `json:"orphaned,omitempty"`
}

// ObjectException is one object that is not as it should be.
type ObjectException struct {
	// group of the object; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// kind of the object.
	Kind string `json:"kind"`
	// namespace of the object; empty for cluster-scoped kinds.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
	// reason is a word: Rejected, Conflict, OwnedByOther, Immutable, Unreachable,
	// Progressing, Degraded, Drifted, Contested, Orphaned, Unknown.
	Reason string `json:"reason"`
	// message for people; at most 512 bytes.
	// +optional
	Message string `json:"message,omitempty"`
	// since when it has been so, as seen at the edge.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// Operation types and phases.
const (
	OperationSync    = "Sync"
	OperationHeal    = "Heal"
	OperationRemove  = "Remove"
	OperationRelease = "Release"

	PhaseRunning   = "Running"
	PhaseSucceeded = "Succeeded"
	PhaseFailed    = "Failed"
)

// Operation is something that the engine did or does for a Release.
type Operation struct {
	// type: Sync, Heal, Remove, Release.
	Type string `json:"type"`
	// phase: Running, Succeeded, Failed.
	Phase string `json:"phase"`
	// sequence of the order it is about.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// startedAt, by the edge's clock.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// finishedAt, by the edge's clock.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// deadline of what it waits for.
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`
	// message: what it waits for, what failed, or what was healed and who changed it.
	// +optional
	Message string `json:"message,omitempty"`
}

// AdoptedOrder says that the hub went back in time and the agent did not. Nothing
// is rolled back until the inputs of the render change, or somebody asks for a sync.
type AdoptedOrder struct {
	// sequence of the order that was given back.
	Sequence int64 `json:"sequence"`
	// inputsHash that the hub had then: as long as its inputs have this hash, the
	// adopted render stays.
	// +optional
	InputsHash string `json:"inputsHash,omitempty"`
	// at is when it was adopted, by the hub's clock.
	At metav1.Time `json:"at"`
}

// HeldDeletion is a deletion that waits for a confirmation.
type HeldDeletion struct {
	// reason: DeletionBudget (more than the budget in a while) or GarbageCollector
	// (an owner is missing that this hub never knew).
	Reason string `json:"reason"`
	// message for people.
	Message string `json:"message"`
	// by is the user who asked.
	By string `json:"by"`
	// at is when it was last refused, by the hub's clock.
	At metav1.Time `json:"at"`
	// until then the budget is used up; not set when waiting does not help.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// sequence of the order that runs, of a Cluster the highest of its Releases, to be
	// named in a confirmation.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// digest over what would be deleted, to be named in a confirmation.
	// +optional
	Digest string `json:"digest,omitempty"`
}

// HistoryEntry is one render that was applied.
type HistoryEntry struct {
	// renderRef is the digest.
	RenderRef string `json:"renderRef"`
	// sealed layer that belongs to it.
	// +optional
	Sealed LayerReference `json:"sealed,omitzero"`
	// sourceRevision it was made of.
	// +optional
	SourceRevision string `json:"sourceRevision,omitempty"`
	// targetNamespace that it was made for.
	// +optional
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// provenance: what it was made of.
	// +optional
	Provenance *Provenance `json:"provenance,omitempty"`
	// sequence of the order that applied it.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// appliedAt, by the hub's clock.
	// +optional
	AppliedAt *metav1.Time `json:"appliedAt,omitempty"`
	// healthy: whether it was seen healthy.
	// +optional
	Healthy bool `json:"healthy,omitempty"`
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
	// requestedAt is part of the answer: the value that the sync annotation now
	// has. The request is done when status.lastSyncRequest shows it.
	// +optional
	RequestedAt string `json:"requestedAt,omitempty"`
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
