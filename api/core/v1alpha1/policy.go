// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DriftPolicy says which differences between the render and the cluster are none.
type DriftPolicy struct {
	// ignore: fields that are left to others. A field named here is applied when its
	// object is made, and from then on neither compared nor changed. At most 32 rules.
	// +optional
	// +listType=atomic
	Ignore []DriftIgnore `json:"ignore,omitempty"`
}

// DriftIgnore selects objects, and fields of them. What is empty selects all; at least
// one of pointers and managers says which fields, with neither it is the whole object.
type DriftIgnore struct {
	// group of the objects; "*" or unset with a kind: any.
	// +optional
	Group string `json:"group,omitempty"`
	// kind of the objects.
	// +optional
	Kind string `json:"kind,omitempty"`
	// namespace of the objects on the target.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the objects.
	// +optional
	Name string `json:"name,omitempty"`
	// when is CEL over object, the live object (values of Secrets masked): the rule
	// holds where it is true. Where it fails, the fields are left alone, and InSync of the
	// object is Unknown and says why.
	// +optional
	When string `json:"when,omitempty"`
	// pointers are JSON pointers (RFC 6901) to fields, with "*" for any index of a list.
	// +optional
	// +listType=atomic
	Pointers []string `json:"pointers,omitempty"`
	// managers: fields that these field managers own.
	// +optional
	// +listType=atomic
	Managers []string `json:"managers,omitempty"`
}

// HealthPolicy says by which rules the health of objects is judged.
type HealthPolicy struct {
	// ruleSets are names of HealthRuleSets of this namespace and of
	// GlobalHealthRuleSets, a HealthRuleSet before a global one of the same name.
	// Unset: all of this namespace, then all global ones. At most 16.
	// +optional
	// +listType=atomic
	RuleSets []string `json:"ruleSets,omitempty"`
}

// AllowedPolicy says what Releases may do on a Cluster. The hub refuses to order, and
// the agent refuses to carry out, what it forbids, naming the rule. A list that is not
// set forbids nothing; an empty one allows nothing of its kind.
type AllowedPolicy struct {
	// targetNamespaces that objects may lie in: names, or prefixes ending in "*".
	// +optional
	// +listType=atomic
	TargetNamespaces []string `json:"targetNamespaces,omitzero"`
	// clusterScopedKinds that may be applied, as Kind or Kind.group; "*": any.
	// +optional
	// +listType=atomic
	ClusterScopedKinds []string `json:"clusterScopedKinds,omitzero"`
	// serviceAccounts that Releases have to name one of, as <namespace>:<name> with "*"
	// for either part. Set: a Release without serviceAccountName is refused.
	// +optional
	// +listType=atomic
	ServiceAccounts []string `json:"serviceAccounts,omitzero"`
}
