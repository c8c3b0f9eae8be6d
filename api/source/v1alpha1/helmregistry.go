// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HelmRegistry is a repository of charts that Releases of its namespace take charts
// from.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type HelmRegistry struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says where the charts are.
	Spec HelmRegistrySpec `json:"spec"`
	// status says whether it can be reached. Written by the hub alone.
	// +optional
	Status SourceStatus `json:"status,omitempty"`
}

// HelmRegistrySpec is what a user writes.
type HelmRegistrySpec struct {
	// url of the repository: https://host/path with an index.yaml, or oci://host/path
	// below which charts lie. http, and oci over http, are used only for hosts opened
	// with --source-allow-cidr.
	URL string `json:"url"`
	// interval at which versions are looked up again; default 5m, at least 5s.
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// secretRef names a Secret with the credentials: username and password, or
	// .dockerconfigjson, or tls.crt and tls.key for a client certificate. Whoever
	// writes this field must be allowed to get that Secret.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
	// caSecretRef names a Secret whose key ca.crt holds the certificates to trust, PEM.
	// +optional
	CASecretRef *SecretReference `json:"caSecretRef,omitempty"`
	// passCredentials sends the credentials also to other hosts that the index names;
	// default false.
	// +optional
	PassCredentials bool `json:"passCredentials,omitempty"`
	// webhook lets a push be told at once.
	// +optional
	Webhook *SourceWebhook `json:"webhook,omitempty"`
	// verify requires a signature of each chart.
	// +optional
	Verify *SourceVerify `json:"verify,omitempty"`
}

// SignatureCosign is the one kind of signature that is built.
const SignatureCosign = "cosign"

// SourceVerify requires signatures. What cannot be verified is not used.
type SourceVerify struct {
	// provider: cosign.
	Provider string `json:"provider"`
	// secretRef names a Secret whose keys that end in .pub hold public keys, PEM; one
	// of them has to have signed.
	SecretRef SecretReference `json:"secretRef"`
}

// SourceStatus is that of the kinds whose content is in a registry. Written by the
// hub alone.
type SourceStatus struct {
	// observedGeneration is the generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// revision that was last seen: of an OCIRegistry as in latest@sha256:<hex>, of a
	// HelmRegistry the digest of its index; empty for oci://.
	// +optional
	Revision string `json:"revision,omitempty"`
	// checkedSecrets are the references to Secrets whose use was checked for the
	// user who wrote them. The hub reads no other.
	// +optional
	// +listType=set
	CheckedSecrets []string `json:"checkedSecrets,omitempty"`
}

// HelmRegistryList is a list of HelmRegistries.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type HelmRegistryList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items of the list.
	Items []HelmRegistry `json:"items"`
}
