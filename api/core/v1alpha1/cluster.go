// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConnectionMode says how convoy reaches the API server of a Cluster.
type ConnectionMode string

// ConnectionModeAgent means that an agent in the cluster dials out to the hub.
const ConnectionModeAgent ConnectionMode = "agent"

// Cluster is a target for Releases of its namespace.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says how the cluster is reached and what templates may read of it.
	// +optional
	Spec ClusterSpec `json:"spec,omitempty"`
	// status is what the hub last recorded of the cluster. Ages and traffic are
	// not in it: they are answered live.
	// +optional
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterSpec is what a platform engineer writes.
type ClusterSpec struct {
	// connectionMode: "agent" (default): an agent in the cluster dials out to the hub.
	// +optional
	ConnectionMode ConnectionMode `json:"connectionMode,omitempty"`
	// metadata is what templates and CEL expressions read as `cluster`. Keys and
	// values are strings; at most 64 keys of 253 bytes, values of 1024 bytes.
	// cluster.name is always the object's name, whatever stands here.
	// +optional
	Metadata map[string]string `json:"metadata,omitempty"`
}

// ClusterStatus is written by the hub alone.
type ClusterStatus struct {
	// observedGeneration is the generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready (reasons Connected, NeverJoined, Disconnected).
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// reachable is true while the agent's session lives, and for 90 s after it.
	// Releases of a cluster that is not reachable are neither rendered nor ordered.
	// +optional
	Reachable bool `json:"reachable,omitempty"`
	// kubernetesVersion of the cluster's API server, as in v1.37.2.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// apiVersions served by the cluster, sorted ("apps/v1"); at most 512.
	// +optional
	// +listType=atomic
	APIVersions []string `json:"apiVersions,omitempty"`
	// clusterUID is the identity of the target: the UID of its kube-system namespace.
	// +optional
	ClusterUID string `json:"clusterUID,omitempty"`
	// agentVersion is the version that the agent said at its last connect.
	// +optional
	AgentVersion string `json:"agentVersion,omitempty"`
	// join is the token that may be used once to join, until it is used or expires.
	// +optional
	Join *ClusterJoinStatus `json:"join,omitempty"`
	// agent is the identity that joined.
	// +optional
	Agent *ClusterAgentStatus `json:"agent,omitempty"`
}

// ClusterJoinStatus is the public half of a join token. Nothing in it is secret.
type ClusterJoinStatus struct {
	// publicKey of the token: Ed25519, standard base64.
	PublicKey string `json:"publicKey"`
	// expiresAt: not usable from then on.
	ExpiresAt metav1.Time `json:"expiresAt"`
}

// ClusterAgentStatus is what the hub keeps of the agent that joined.
type ClusterAgentStatus struct {
	// boundKey is the agent's long-lived public key: Ed25519, standard base64.
	BoundKey string `json:"boundKey"`
	// joinKey is the public key of the token that was used. A second use of that
	// token is refused by name.
	// +optional
	JoinKey string `json:"joinKey,omitempty"`
	// joinedAt is when the token was used.
	JoinedAt metav1.Time `json:"joinedAt"`
	// certificateExpiresAt is the end of the newest certificate issued to it.
	// +optional
	CertificateExpiresAt *metav1.Time `json:"certificateExpiresAt,omitempty"`
	// certificateSerial of the newest certificate, hexadecimal.
	// +optional
	CertificateSerial string `json:"certificateSerial,omitempty"`
}

// ClusterList is a list of Clusters.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items of the list.
	Items []Cluster `json:"items"`
}

// JoinRequest is the request and the answer of POST clusters/NAME/join: it
// registers the public half of a join token. The secret half never leaves the
// caller, so there is none in a request, an answer, an audit log or etcd.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type JoinRequest struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata; name, if given, is the Cluster's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what the caller asks for.
	// +optional
	Spec JoinRequestSpec `json:"spec,omitempty"`
	// status is the answer.
	// +optional
	Status JoinRequestStatus `json:"status,omitempty"`
}

// JoinRequestSpec asks for a join token.
type JoinRequestSpec struct {
	// publicKey of the token: Ed25519, standard base64. Required: a join request
	// without one is refused, since the hub never makes a secret for others.
	PublicKey string `json:"publicKey"`
	// ttl of the token; default and maximum 1h.
	// +optional
	TTL *metav1.Duration `json:"ttl,omitempty"`
}

// JoinRequestStatus is all that an installer needs besides the token's seed.
type JoinRequestStatus struct {
	// expiresAt: the token is not usable from then on.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// gatewayURL is where agents dial, as in wss://convoy.example:443.
	// +optional
	GatewayURL string `json:"gatewayURL,omitempty"`
	// hubID names the hub in certificates and owner annotations.
	// +optional
	HubID string `json:"hubID,omitempty"`
	// clusterUID of the Cluster object that the token is bound to.
	// +optional
	ClusterUID string `json:"clusterUID,omitempty"`
	// hubCA: the hub's CA certificate, PEM.
	// +optional
	HubCA string `json:"hubCA,omitempty"`
	// caPin is the SHA-256 of the hub CA's public key (SPKI), "sha256:<hex>".
	// +optional
	CAPin string `json:"caPin,omitempty"`
	// orderKeys are the public keys that sign orders: Ed25519, standard base64.
	// +optional
	// +listType=atomic
	OrderKeys []string `json:"orderKeys,omitempty"`
	// agentImage that the hub was told to install.
	// +optional
	AgentImage string `json:"agentImage,omitempty"`
}
