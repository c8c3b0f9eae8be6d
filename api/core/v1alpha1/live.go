// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ReleaseHealth is the answer of GET releases/NAME/health: how each object of a Release
// is on its cluster, now, as its agent says; or else what the hub knew last.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ReleaseHealth struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata; name and namespace are the Release's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// observation says whether this is live, and from when it is.
	Observation Observation `json:"observation"`
	// objects, the worst first when live, else in the order in which they were applied.
	// +optional
	// +listType=atomic
	Objects []ObjectHealth `json:"objects,omitempty"`
	// moreObjects counts those that did not fit.
	// +optional
	MoreObjects int32 `json:"moreObjects,omitempty"`
}

// Observation says what an answer about a cluster is worth.
type Observation struct {
	// live: the agent was asked, and answered. False: it is what the hub knew last.
	Live bool `json:"live"`
	// at is from when it is: by the edge's clock when live, by the hub's otherwise; unset
	// when nothing is known.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
	// sequence of the order that it is about.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// message says why it is not live.
	// +optional
	Message string `json:"message,omitempty"`
}

// ObjectHealth is one object on the cluster.
type ObjectHealth struct {
	// group of the object; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// version it was applied with; no part of its identity.
	// +optional
	Version string `json:"version,omitempty"`
	// kind of the object.
	Kind string `json:"kind"`
	// namespace of the object; empty for cluster-scoped kinds.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
	// wave it was applied in.
	// +optional
	Wave int32 `json:"wave,omitempty"`
	// state: Healthy, Progressing, Degraded, Suspended, Terminating, Unknown.
	State string `json:"state"`
	// message says why.
	// +optional
	Message string `json:"message,omitempty"`
	// since when it is in that state, by the edge's clock, as far as it is known.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// inSync: True, False, Unknown; empty when nobody was asked.
	// +optional
	InSync string `json:"inSync,omitempty"`
	// reason is that of an exception of the Release: Drifted, Contested, Terminating, ...
	// +optional
	Reason string `json:"reason,omitempty"`
	// problem says more of the reason.
	// +optional
	Problem string `json:"problem,omitempty"`
}

// ReleaseDiff is the answer of GET releases/NAME/diff: how what runs differs from what
// was applied, and how what was applied differs from what would be applied next. Values
// of Secrets are not in it.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ReleaseDiff struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata; name and namespace are the Release's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// different: something is in drift or in pending.
	Different bool `json:"different"`
	// observation says whether drift is live, and from when it is.
	Observation Observation `json:"observation"`
	// drift are the objects on the cluster that are not as they were applied, or of
	// which that is not known.
	// +optional
	// +listType=atomic
	Drift []ObjectDrift `json:"drift,omitempty"`
	// moreDrift counts those that did not fit.
	// +optional
	MoreDrift int32 `json:"moreDrift,omitempty"`
	// appliedRef is the digest of the render that was last applied in full.
	// +optional
	AppliedRef string `json:"appliedRef,omitempty"`
	// renderRef is the digest of the current render.
	// +optional
	RenderRef string `json:"renderRef,omitempty"`
	// pending are the objects that differ between both, where they are not the same.
	// +optional
	// +listType=atomic
	Pending []ObjectChange `json:"pending,omitempty"`
	// pendingProblem says why that cannot be told.
	// +optional
	PendingProblem string `json:"pendingProblem,omitempty"`
}

// ObjectDrift is an object that is not as it was applied.
type ObjectDrift struct {
	// group of the object; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// version it was applied with; no part of its identity.
	// +optional
	Version string `json:"version,omitempty"`
	// kind of the object.
	Kind string `json:"kind"`
	// namespace of the object; empty for cluster-scoped kinds.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
	// inSync: False, or Unknown when it could not be compared.
	InSync string `json:"inSync"`
	// reason is that of an exception of the Release: Drifted, Contested, ...
	// +optional
	Reason string `json:"reason,omitempty"`
	// problem says more of the reason.
	// +optional
	Problem string `json:"problem,omitempty"`
	// fields that differ.
	// +optional
	// +listType=atomic
	Fields []FieldDifference `json:"fields,omitempty"`
	// moreFields counts those that did not fit.
	// +optional
	MoreFields int32 `json:"moreFields,omitempty"`
}

// FieldDifference is one field of an object. The values are JSON, cut where they are
// long; empty where there is none, *** where they must not be shown.
type FieldDifference struct {
	// path of the field.
	Path string `json:"path"`
	// wanted is what was applied.
	// +optional
	Wanted string `json:"wanted,omitempty"`
	// live is what is there.
	// +optional
	Live string `json:"live,omitempty"`
	// manager of the field on the cluster, as far as it is known.
	// +optional
	Manager string `json:"manager,omitempty"`
}

// ChangeType says what a render does to an object.
type ChangeType string

// Types of changes.
const (
	ChangeAdded   ChangeType = "Added"
	ChangeChanged ChangeType = "Changed"
	ChangeRemoved ChangeType = "Removed"
)

// ObjectChange is an object that two renders have in different forms.
type ObjectChange struct {
	// change: Added, Changed, Removed.
	Change ChangeType `json:"change"`
	// applied is the object in the render that was applied.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Applied *runtime.RawExtension `json:"applied,omitempty"`
	// wanted is the object in the current render.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Wanted *runtime.RawExtension `json:"wanted,omitempty"`
}

// ReleaseHistory is the answer of GET releases/NAME/history: the renders that were
// applied, and what is left of them.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ReleaseHistory struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata; name and namespace are the Release's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// entries, newest first.
	// +optional
	// +listType=atomic
	Entries []HistoryDetail `json:"entries,omitempty"`
}

// HistoryDetail is one render that was applied.
type HistoryDetail struct {
	HistoryEntry `json:",inline"`
	// current: it is the render that the Release has now.
	// +optional
	Current bool `json:"current,omitempty"`
	// applied: it is the render that was last applied in full.
	// +optional
	Applied bool `json:"applied,omitempty"`
	// stored: the hub still has it.
	Stored bool `json:"stored"`
	// count of its objects, hooks included, when it is stored.
	// +optional
	Count int32 `json:"count,omitempty"`
}
