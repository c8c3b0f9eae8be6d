// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OCIRegistry is an artifact of manifests, a kustomization or a chart in an OCI
// registry that Releases of its namespace take content from.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type OCIRegistry struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says where the artifact is and which one is meant.
	Spec OCIRegistrySpec `json:"spec"`
	// status says whether it can be reached. Written by the hub alone.
	// +optional
	Status SourceStatus `json:"status,omitempty"`
}

// OCIRegistrySpec is what a user writes.
type OCIRegistrySpec struct {
	// url of the repository: oci://host/path, without tag or digest. Plain http is used
	// only for hosts opened with --source-allow-cidr.
	URL string `json:"url"`
	// ref that is meant; default: tag latest.
	// +optional
	Ref OCIRef `json:"ref,omitempty"`
	// interval at which the ref is looked up again; default 5m, at least 5s.
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// secretRef names a Secret with the credentials: .dockerconfigjson, or username
	// and password, or tls.crt and tls.key for a client certificate. Whoever writes
	// this field must be allowed to get that Secret.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
	// caSecretRef names a Secret whose key ca.crt holds the certificates to trust, PEM.
	// +optional
	CASecretRef *SecretReference `json:"caSecretRef,omitempty"`
	// webhook lets a push be told at once.
	// +optional
	Webhook *SourceWebhook `json:"webhook,omitempty"`
	// verify requires a signature of the artifact.
	// +optional
	Verify *SourceVerify `json:"verify,omitempty"`
}

// OCIRef is a ref: at most one field is set.
type OCIRef struct {
	// tag to follow.
	// +optional
	Tag string `json:"tag,omitempty"`
	// semver range; the highest matching tag is used.
	// +optional
	Semver string `json:"semver,omitempty"`
	// digest: sha256:<hex>.
	// +optional
	Digest string `json:"digest,omitempty"`
}

// OCIRegistryList is a list of OCIRegistries.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type OCIRegistryList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items of the list.
	Items []OCIRegistry `json:"items"`
}
