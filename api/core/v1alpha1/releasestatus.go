// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	// hooks are the last runs of lifecycle hooks, newest first, at most 32.
	// +optional
	// +listType=atomic
	Hooks []HookRun `json:"hooks,omitempty"`
	// heldPrune is set while a sync waits for somebody to confirm its deletions.
	// +optional
	HeldPrune *HeldPrune `json:"heldPrune,omitempty"`
	// lastSyncRequest is the value of the sync annotation last acted on.
	// +optional
	LastSyncRequest string `json:"lastSyncRequest,omitempty"`
	// lastForceRequest is the value of the force annotation last acted on.
	// +optional
	LastForceRequest string `json:"lastForceRequest,omitempty"`
	// lastConfirmation is the value of the annotation confirm-deletions last acted on.
	// +optional
	LastConfirmation string `json:"lastConfirmation,omitempty"`
	// lastHookRequest is the value of the annotation hook-requested last acted on.
	// +optional
	LastHookRequest string `json:"lastHookRequest,omitempty"`
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
	// count of objects, hooks included.
	Count int32 `json:"count"`
	// hooks counts the objects that are hooks: with any, the order of the render requires
	// hooks.v1.
	// +optional
	Hooks int32 `json:"hooks,omitempty"`
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
	// warnings for people: which template calls a function whose answer is another in every
	// render, which hooks were left out. At most 16, of 512 bytes each.
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`
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
	// Progressing, Degraded, Suspended, Drifted, Contested, Orphaned, Terminating, Unknown.
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
	PhaseAborted   = "Aborted" // by a person
)

// Operation is something that the engine did or does for a Release.
type Operation struct {
	// type: Sync, Heal, Remove, Release.
	Type string `json:"type"`
	// phase: Running, Succeeded, Failed, Aborted.
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
