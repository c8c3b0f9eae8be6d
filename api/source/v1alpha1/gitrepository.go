// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GitRepository is a Git repository that Releases of its namespace take content from.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type GitRepository struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says where the repository is and which ref of it is meant.
	Spec GitRepositorySpec `json:"spec"`
	// status says whether it can be reached. Written by the hub alone.
	// +optional
	Status GitRepositoryStatus `json:"status,omitempty"`
}

// GitRepositorySpec is what a user writes.
type GitRepositorySpec struct {
	// url of the repository: https://host/path or ssh://user@host/path. http is
	// accepted only for hosts opened with --source-allow-cidr.
	URL string `json:"url"`
	// ref that is meant; default: branch main.
	// +optional
	Ref GitRef `json:"ref,omitempty"`
	// interval at which the ref is looked up again; default 1m, at least 5s.
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// secretRef names a Secret with the credentials: username and password, or
	// token (bearerToken), or identity (a private key) with known_hosts, or tls.crt and
	// tls.key for a client certificate. Whoever writes this field must be allowed to get
	// that Secret.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
	// caSecretRef names a Secret whose key ca.crt holds the certificates to trust
	// for https, PEM.
	// +optional
	CASecretRef *SecretReference `json:"caSecretRef,omitempty"`
	// webhook lets a push be told at once.
	// +optional
	Webhook *SourceWebhook `json:"webhook,omitempty"`
}

// Types of webhooks.
const (
	// WebhookGitHub: X-Hub-Signature-256 over the body.
	WebhookGitHub = "github"
	// WebhookGeneric: X-Convoy-Signature: sha256=<hex> of the same kind.
	WebhookGeneric = "generic"
)

// SourceWebhook says how a source tells of changes. A call asks the source again; it
// is taken for no more than a hint.
type SourceWebhook struct {
	// type: github or generic.
	Type string `json:"type"`
	// secretRef names a Secret whose key token is that of the HMAC. Whoever writes this
	// field must be allowed to get that Secret.
	SecretRef SecretReference `json:"secretRef"`
}

// SecretReference names a Secret of the same namespace.
type SecretReference struct {
	// name of the Secret.
	Name string `json:"name"`
}

// GitRef is a ref: at most one field is set.
type GitRef struct {
	// branch to follow.
	// +optional
	Branch string `json:"branch,omitempty"`
	// tag to use.
	// +optional
	Tag string `json:"tag,omitempty"`
	// semver range; the highest matching tag is used.
	// +optional
	Semver string `json:"semver,omitempty"`
	// commit: 40 hexadecimal digits.
	// +optional
	Commit string `json:"commit,omitempty"`
	// name of a ref in full: refs/heads/main, refs/tags/v1, refs/pull/7/head.
	// +optional
	Name string `json:"name,omitempty"`
}

// GitRepositoryStatus is written by the hub alone.
type GitRepositoryStatus struct {
	// observedGeneration is the generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// revision that the ref was last seen at, as in main@sha1:<commit>.
	// +optional
	Revision string `json:"revision,omitempty"`
	// checkedSecrets are the references to Secrets whose use was checked for the
	// user who wrote them. The hub reads no other.
	// +optional
	// +listType=set
	CheckedSecrets []string `json:"checkedSecrets,omitempty"`
}

// Condition types and reasons of a source.
const (
	ConditionReady = "Ready"

	ReasonReachable             = "Reachable"
	ReasonUnreachable           = "Unreachable"
	ReasonRefNotFound           = "RefNotFound"
	ReasonAuthFailed            = "AuthenticationFailed"
	ReasonDenied                = "AddressDenied"
	ReasonNotChecked            = "SecretNotChecked"
	ReasonNoHostCluster         = "NoHostCluster"
	ReasonSecretMissing         = "SecretMissing"
	ReasonCertificateNotTrusted = "CertificateNotTrusted"
	ReasonHostKeyNotTrusted     = "HostKeyNotTrusted"
	ReasonRateLimited           = "RateLimited"
	ReasonTimeout               = "Timeout"
	ReasonSignatureInvalid      = "SignatureInvalid" // none, or by none of the keys
	ReasonTooLarge              = "TooLarge"         // a limit of a fetch
	ReasonInvalid               = "Invalid"          // a URL, ref or Secret that cannot be used
)

// GitRepositoryList is a list of GitRepositories.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type GitRepositoryList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items of the list.
	Items []GitRepository `json:"items"`
}
