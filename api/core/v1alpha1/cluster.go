// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConnectionMode says how convoy reaches the API server of a Cluster.
type ConnectionMode string

// Connection modes.
const (
	// ConnectionModeAgent: an agent in the cluster dials out to the hub.
	ConnectionModeAgent ConnectionMode = "agent"
	// ConnectionModeAgentless: the hub dials the cluster with a kubeconfig.
	ConnectionModeAgentless ConnectionMode = "agentless"
	// ConnectionModeInCluster: the cluster is the one that the hub runs in.
	ConnectionModeInCluster ConnectionMode = "inCluster"
)

// AuthTypeKubeconfig is the one type of agentless.auth that is built.
const AuthTypeKubeconfig = "kubeconfig"

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
	// connectionMode: "agent" (default): an agent in the cluster dials out to the hub;
	// "agentless": the hub dials the cluster as agentless says; "inCluster": the
	// cluster is the one that the hub runs in. Immutable.
	// +optional
	ConnectionMode ConnectionMode `json:"connectionMode,omitempty"`
	// agentless says how the hub reaches the cluster; required in that mode, refused
	// in others.
	// +optional
	Agentless *AgentlessConnection `json:"agentless,omitempty"`
	// deletionPolicy says what a deletion of this Cluster does to its Releases.
	// +optional
	DeletionPolicy ClusterDeletionPolicy `json:"deletionPolicy,omitempty"`
	// metadata is what templates and CEL expressions read as `cluster`. Keys and
	// values are strings; at most 64 keys of 253 bytes, values of 1024 bytes.
	// cluster.name is always the object's name, whatever stands here.
	// +optional
	Metadata map[string]string `json:"metadata,omitempty"`
	// allowed says what Releases may do on this cluster; unset: all that the agent may.
	// +optional
	Allowed *AllowedPolicy `json:"allowed,omitempty"`
}

// AgentlessConnection is how the hub reaches a cluster by itself.
type AgentlessConnection struct {
	// server, https://host:port, is shown and validated. With kubeconfig auth the
	// kubeconfig's current context decides.
	// +optional
	Server string `json:"server,omitempty"`
	// caPublicCertRef names a Secret key with the server's CA certificates, PEM. It
	// is not used with kubeconfig auth.
	// +optional
	CAPublicCertRef *SecretKeyReference `json:"caPublicCertRef,omitempty"`
	// auth says which credentials are used.
	Auth ClusterAuth `json:"auth"`
}

// ClusterAuth are credentials for a cluster.
type ClusterAuth struct {
	// type: kubeconfig. Others give Ready=False with reason Unsupported.
	Type string `json:"type"`
	// kubeconfig: required with that type.
	// +optional
	Kubeconfig *KubeconfigAuth `json:"kubeconfig,omitempty"`
}

// KubeconfigAuth takes server, CA and credentials from a kubeconfig.
type KubeconfigAuth struct {
	// secretRef names the Secret key that holds a whole kubeconfig. It has to stand
	// alone: no exec or auth-provider plugin, no reference to a file.
	SecretRef SecretKeyReference `json:"secretRef"`
}

// SecretKeyReference names one key of a Secret of the same namespace.
type SecretKeyReference struct {
	// name of the Secret.
	Name string `json:"name"`
	// key in its data.
	Key string `json:"key"`
}

// ClusterDeletionPolicy says what a deletion of a Cluster does to its Releases.
type ClusterDeletionPolicy struct {
	// pruneReleases: delete each Release, with its own deletionPolicy, before the
	// Cluster goes. Default false: the Cluster goes at once, its Releases stay and
	// report ClusterNotReady, workloads run on.
	// +optional
	PruneReleases bool `json:"pruneReleases,omitempty"`
}

// ClusterStatus is written by the hub alone.
type ClusterStatus struct {
	// observedGeneration is the generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready (reasons Connected, NeverJoined, Disconnected, ProbeFailed,
	// Unsupported, Revoked, CloneDetected, ClusterConflict) and, only while it is so,
	// HubBehind: the agent holds newer orders than the hub knows.
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
	// formerClusterUIDs are targets that this Cluster stood for before, newest first,
	// at most 8. An agent that comes from one of them is refused: ClusterConflict.
	// +optional
	// +listType=atomic
	FormerClusterUIDs []string `json:"formerClusterUIDs,omitempty"`
	// clockSkew is how far the agent's clock was ahead of the hub's at the last
	// connect, to the minute, as in 2h0m0s or -2h0m0s; absent within a minute.
	// +optional
	ClockSkew string `json:"clockSkew,omitempty"`
	// unknownReleases are Releases that run on the cluster under this hub's signature
	// and do not exist here: kept there. The first 16, by namespace and name.
	// +optional
	// +listType=atomic
	UnknownReleases []UnknownRelease `json:"unknownReleases,omitempty"`
	// unknownReleaseCount counts all of them.
	// +optional
	UnknownReleaseCount int32 `json:"unknownReleaseCount,omitempty"`
	// leftBehind counts Releases of which objects that were to go may still be on the
	// cluster: deleted ones, because it was away for more than 30 days, and those that
	// its agent had no record of any more, as one that was installed anew.
	// +optional
	LeftBehind int32 `json:"leftBehind,omitempty"`
	// heldDeletion is the last deletion of this Cluster, with its Releases, that was
	// refused and can be confirmed.
	// +optional
	HeldDeletion *HeldDeletion `json:"heldDeletion,omitempty"`
	// checkedSecrets are the Secrets whose use by spec was allowed to the user who
	// wrote it. Others are not read.
	// +optional
	// +listType=atomic
	CheckedSecrets []string `json:"checkedSecrets,omitempty"`
}

// UnknownRelease is a Release that the target runs and the hub does not have.
type UnknownRelease struct {
	// namespace that it had.
	Namespace string `json:"namespace"`
	// name that it had.
	Name string `json:"name"`
	// uid that it had.
	UID string `json:"uid"`
	// sequence of the order that runs.
	Sequence int64 `json:"sequence"`
	// renderRef is the digest of the render that runs.
	// +optional
	RenderRef string `json:"renderRef,omitempty"`
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
	// renewals counts certificates since the join. Each certificate carries its
	// number; two agents whose numbers part are clones.
	// +optional
	Renewals int64 `json:"renewals,omitempty"`
	// usedRenewal is the newest number that a session was opened with: from then on
	// older ones are refused.
	// +optional
	UsedRenewal int64 `json:"usedRenewal,omitempty"`
	// recoveries counts certificates that were asked for with the bound key, within a
	// day before the newest of them.
	// +optional
	Recoveries int64 `json:"recoveries,omitempty"`
	// recoveredAt is when each of these was asked for, the oldest first.
	// +optional
	// +listType=atomic
	RecoveredAt []metav1.Time `json:"recoveredAt,omitempty"`
	// lastRecoveryAt is when that was last done.
	// +optional
	LastRecoveryAt *metav1.Time `json:"lastRecoveryAt,omitempty"`
	// revokedAt: the identity is not accepted from then on, until a new join.
	// +optional
	RevokedAt *metav1.Time `json:"revokedAt,omitempty"`
	// cloneDetectedAt: two agents used this identity. Neither is accepted until a
	// new join.
	// +optional
	CloneDetectedAt *metav1.Time `json:"cloneDetectedAt,omitempty"`
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

// RevokeRequest is the request and the answer of POST clusters/NAME/revoke: the
// identity that joined is not accepted any more, and its session ends. A new join
// makes a new one. What runs on the cluster stays as it is.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type RevokeRequest struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata; name, if given, is the Cluster's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// revokedAt is part of the answer: since when the identity is refused.
	// +optional
	RevokedAt *metav1.Time `json:"revokedAt,omitempty"`
}
