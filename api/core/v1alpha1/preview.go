// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Preview is the answer of GET and POST releases/NAME/preview: what a Release renders
// to now, or would. It is made for the request, stored nowhere and applied nowhere. It
// shows the objects layer alone: each Secret value in it is replaced by a keyed MAC.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Preview struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata; name and namespace are the Release's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// renderRef is the digest that the render has: sha256:<hex>. Equal to the Release's
	// status.renderRef, nothing would change.
	RenderRef string `json:"renderRef"`
	// sourceRevision that it was made of, as in main@sha1:<commit>.
	// +optional
	SourceRevision string `json:"sourceRevision,omitempty"`
	// targetNamespace that it was made for.
	// +optional
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// provenance: what it was made of.
	// +optional
	Provenance *Provenance `json:"provenance,omitempty"`
	// reads are the facts that the render really read, as in cluster.region.
	// +optional
	// +listType=atomic
	Reads []string `json:"reads,omitempty"`
	// warnings for people.
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`
	// count of objects, hooks included.
	Count int32 `json:"count"`
	// hooks counts the objects that are hooks.
	// +optional
	Hooks int32 `json:"hooks,omitempty"`
	// objects in the order in which they are applied.
	// +optional
	// +listType=atomic
	Objects []runtime.RawExtension `json:"objects,omitempty"`
}

// PreviewOptions are the query of GET releases/NAME/preview.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PreviewOptions struct {
	metav1.TypeMeta `json:",inline"`
	// revision to render instead of the one that spec.source names.
	// +optional
	Revision string `json:"revision,omitempty"`
}
