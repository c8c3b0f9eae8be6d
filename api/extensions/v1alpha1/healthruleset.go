// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HealthRuleSet holds health rules for Releases of its namespace.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type HealthRuleSet struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec holds the rules.
	Spec HealthRuleSetSpec `json:"spec"`
	// status says whether they compile. Written by the hub alone.
	// +optional
	Status HealthRuleSetStatus `json:"status,omitempty"`
}

// HealthRuleSetList is a list of HealthRuleSets.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type HealthRuleSetList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items of the list.
	Items []HealthRuleSet `json:"items"`
}

// GlobalHealthRuleSet holds health rules for Releases of all namespaces. It has no
// namespace.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type GlobalHealthRuleSet struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec holds the rules.
	Spec HealthRuleSetSpec `json:"spec"`
	// status says whether they compile. Written by the hub alone.
	// +optional
	Status HealthRuleSetStatus `json:"status,omitempty"`
}

// GlobalHealthRuleSetList is a list of GlobalHealthRuleSets.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type GlobalHealthRuleSetList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items of the list.
	Items []GlobalHealthRuleSet `json:"items"`
}

// HealthRuleSetSpec is what a user writes.
type HealthRuleSetSpec struct {
	// rules, at most 64, one for a kind. Within a set the first that selects an object
	// judges it.
	// +listType=atomic
	Rules []HealthRule `json:"rules"`
}

// HealthRule says how healthy objects of one kind are. The expressions are CEL over
// object (the live object), cluster (spec.metadata of the Cluster and its name) and self
// (name, namespace, labels, annotations, targetNamespace of the Release). They are tried
// in the order degraded, suspended, progressing, healthy: the first that is true
// decides. When none is, the object is Progressing if healthy is given, else Healthy.
// One that fails makes the object Unknown, and says why.
type HealthRule struct {
	// group of the kind; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// kind, or "*" for all of the group.
	Kind string `json:"kind"`
	// healthy: a CEL expression of type bool.
	// +optional
	Healthy string `json:"healthy,omitempty"`
	// progressing: a CEL expression of type bool.
	// +optional
	Progressing string `json:"progressing,omitempty"`
	// degraded: a CEL expression of type bool.
	// +optional
	Degraded string `json:"degraded,omitempty"`
	// suspended: a CEL expression of type bool.
	// +optional
	Suspended string `json:"suspended,omitempty"`
	// message: a CEL expression of type string, said when the object is not healthy.
	// +optional
	Message string `json:"message,omitempty"`
}

// HealthRuleSetStatus says whether the rules can be used.
type HealthRuleSetStatus struct {
	// observedGeneration is the generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready, with reasons Compiled and RulesFailed.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// errors of rules, at most 16: the place, as in rules[2].degraded, and what is wrong.
	// +optional
	// +listType=atomic
	Errors []RuleError `json:"errors,omitempty"`
}

// RuleError is what is wrong with an expression.
type RuleError struct {
	// field, as in rules[2].degraded.
	Field string `json:"field"`
	// message for people; at most 512 bytes.
	Message string `json:"message"`
}
