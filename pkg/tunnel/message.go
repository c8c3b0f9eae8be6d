// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"reflect"
	"time"
)

// Protocol versions and payload types. docs/protocol.md is the page about them.
const (
	// Subprotocol is the websocket subprotocol; a peer without it is refused.
	Subprotocol = "convoy.v1"

	// TypeOrder and TypeHead are the payload types that signatures cover, so
	// that one signed thing can never be taken for another.
	TypeOrder = "application/vnd.convoy.order.v1+json"
	TypeHead  = "application/vnd.convoy.head.v1+json"
)

// Verb says what an order does.
type Verb string

// Verbs of an order.
const (
	VerbApply   Verb = "apply"   // make the target equal to the render
	VerbRemove  Verb = "remove"  // delete what the inventory has
	VerbRelease Verb = "release" // leave everything as it is, unmarked
)

// ReleaseRef names a Release of the hub. UID alone decides; the names are for people.
type ReleaseRef struct {
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Layer names one layer of a render: "sha256:<hex>" over its bytes, and their number.
type Layer struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// Policy is the part of a Release's sync policy that the engine acts on.
type Policy struct {
	Automatic      bool   `json:"automatic"`
	TimeoutSeconds int64  `json:"timeoutSeconds"`
	ForceConflicts bool   `json:"forceConflicts"`
	Replace        bool   `json:"replace"` // immutable fields: delete and create again
	PruneOrphaned  bool   `json:"pruneOrphaned"`
	AllowEmpty     bool   `json:"allowEmpty,omitempty"` // a render without objects is meant: prune all
	Namespace      string `json:"namespace"`            // for namespaced objects that name none
	// Allowed are kinds that are kept unless they are named: Namespace,
	// CustomResourceDefinition, PersistentVolumeClaim.
	Allowed []string `json:"allowed,omitempty"`
	// Propagation of deletions: Background when empty, Foreground, Orphan.
	Propagation string `json:"propagation,omitempty"`
	// Budget of deletions of one sync; nil: the engine's own, 20 objects or half.
	Budget *DeletionBudget `json:"budget,omitempty"`
	// Confirmed is the digest of a list of deletions that a person has confirmed, and
	// until when that holds, by the hub's clock.
	Confirmed      string    `json:"confirmed,omitempty"`
	ConfirmedUntil time.Time `json:"confirmedUntil,omitzero"`
	// Retry: how often, and after which pauses, a failed operation is tried again.
	Retry *Retry `json:"retry,omitempty"`
	// Suspended: drift is reported, not repaired.
	Suspended bool `json:"suspended,omitempty"`
}

// Equal says whether two policies say the same.
func (p Policy) Equal(q Policy) bool { return reflect.DeepEqual(p, q) }

// DeletionBudget bounds deletions: the higher of both holds.
type DeletionBudget struct {
	Count   int32 `json:"count"`
	Percent int32 `json:"percent"`
}

// Retry of failed operations. Limit -1: no end.
type Retry struct {
	Limit      int32 `json:"limit"`
	MinSeconds int64 `json:"minSeconds"`
	MaxSeconds int64 `json:"maxSeconds"`
}

// Ignore is one rule of what is left to others, see v1alpha1.DriftIgnore.
type Ignore struct {
	Group     string   `json:"group,omitempty"`
	Kind      string   `json:"kind,omitempty"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name,omitempty"`
	When      string   `json:"when,omitempty"`
	Pointers  []string `json:"pointers,omitempty"`
	Managers  []string `json:"managers,omitempty"`
}

// Allowed is what the Cluster permits, see v1alpha1.AllowedPolicy. Nil lists forbid
// nothing.
type Allowed struct {
	Namespaces      []string `json:"namespaces,omitzero"`
	ClusterKinds    []string `json:"clusterKinds,omitzero"`
	ServiceAccounts []string `json:"serviceAccounts,omitzero"`
}

// HookAction is what a person wants of a run of a hook.
type HookAction struct {
	Hook   string `json:"hook"`
	Run    string `json:"run"`
	Action string `json:"action"` // retry, skip, abort
}

// Order is what the hub signs for one Release on one Cluster.
type Order struct {
	Verb Verb `json:"verb"`
	// Hub is the hub's id and ClusterUID the UID of the Cluster object: an order
	// for another cluster is refused.
	Hub        string     `json:"hub"`
	ClusterUID string     `json:"clusterUID"`
	Release    ReleaseRef `json:"release"`
	// Sequence: max(last + 1, now in ms), per Release UID. A lower one than the
	// agent has accepted is refused, and one more than a day ahead of hub time.
	Sequence int64     `json:"sequence"`
	IssuedAt time.Time `json:"issuedAt"`
	// Revision of the source, for people.
	Revision string `json:"revision,omitempty"`
	// Objects is the render's digest. Sealed is nil when no value was sealed.
	// Both are absent in remove and release orders.
	Objects *Layer `json:"objects,omitempty"`
	Sealed  *Layer `json:"sealed,omitempty"`
	// Rules is the layer of health rules that the objects are judged by, nil when the
	// built-in ones are enough. It is JSON, never sealed, and shared by Releases.
	Rules *Layer `json:"rules,omitempty"`
	// Facts are what the rules read of cluster and self, by path, as in cluster.region.
	Facts map[string]string `json:"facts,omitempty"`
	// Force: somebody asked for the render to be applied again, with its hooks. Without
	// it hooks run only for a render that is not the one applied in full last.
	Force  bool   `json:"force,omitempty"`
	Policy Policy `json:"policy"`
	// ServiceAccount, as <namespace>:<name>, that every call for the Release is made as.
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// Ignore: what is left to others.
	Ignore []Ignore `json:"ignore,omitempty"`
	// Permitted on this Cluster; nil: all.
	Permitted *Allowed `json:"permitted,omitempty"`
	// Wave orders Releases of the Cluster: those of a lower one have to be applied and
	// healthy before this one is applied.
	Wave int32 `json:"wave,omitempty"`
	// Actions on hooks that people asked for, newest last.
	Actions []HookAction `json:"actions,omitempty"`
	// Fence of a remove order: the digest of the inventory that it is about, as the
	// hub knew it when it was issued; empty when it knew none.
	Fence string `json:"fence,omitempty"`
	// Requires names features that the agent must have to carry the order out; one
	// that lacks any refuses with AgentTooOld and keeps what runs.
	Requires []string `json:"requires,omitempty"`
}

// Features that orders may require and agents may have.
const (
	FeatureApply   = "apply.v1"
	FeatureRemove  = "remove.v1"
	FeatureRelease = "release.v1"
	FeatureSealed  = "sealed.v1"
	FeatureReplace = "replace.v1"
	// FeatureHooks: hooks of the render are run. FeatureImpersonate: calls are made as
	// ServiceAccount. FeatureIgnore, FeatureRules, FeaturePermitted, FeatureBudget,
	// FeaturePrune (Allowed, Propagation), FeatureWave, FeatureSuspend, FeatureRetry: the
	// fields of these names are kept to.
	FeatureHooks       = "hooks.v1"
	FeatureImpersonate = "impersonate.v1"
	FeatureIgnore      = "ignore.v1"
	FeatureRules       = "rules.v1"
	FeaturePermitted   = "permitted.v1"
	FeatureBudget      = "budget.v1"
	FeaturePrune       = "prune.v1"
	FeatureWave        = "wave.v1"
	FeatureSuspend     = "suspend.v1"
	FeatureRetry       = "retry.v1"
)

// Signed carries a payload with an Ed25519 signature over its type and bytes
// (see Sign). The payload is JSON, kept byte for byte.
type Signed struct {
	Type      string `json:"type"`
	KeyID     string `json:"keyID"`
	Payload   []byte `json:"payload"`
	Signature []byte `json:"signature"`
}

// Head proves which orders a Cluster has, and until when that was so.
type Head struct {
	Hub        string    `json:"hub"`
	ClusterUID string    `json:"clusterUID"`
	Count      int       `json:"count"`
	Hash       string    `json:"hash"` // HashOrders over (Release UID, sequence)
	IssuedAt   time.Time `json:"issuedAt"`
	ExpiresAt  time.Time `json:"expiresAt"`
	// Shared: another Cluster of the hub stands for the same target. Then a mark of the
	// hub whose Release is not in this head may be one of that Cluster's.
	Shared bool `json:"shared,omitempty"`
}

// OrderEvent is one line of the orders stream. Exactly one field is set.
// Lines: the orders of which the agent has another sequence, the Releases that
// it has and the hub does not know, then a head; after that changes, each change
// set closed by a head; a beat at least every 30 s. An agent skips lines that it
// does not know.
type OrderEvent struct {
	Order *Signed `json:"order,omitempty"`
	// Unknown lists UIDs that the head does not count, of those the agent said it
	// has or was sent. What they name is kept.
	Unknown []string `json:"unknown,omitempty"`
	Head    *Signed  `json:"head,omitempty"`
	Beat    bool     `json:"beat,omitempty"`
	// Present lists UIDs of which the agent holds a newer order than the hub, or one
	// that the hub does not have: it is asked to give them back (POST /v1/held).
	Present []string `json:"present,omitempty"`
	// GoAway asks the agent to end the session and to come back later.
	GoAway *GoAway `json:"goAway,omitempty"`
}

// GoAway says that the hub ends soon. The agent ends the session by itself, at a
// random time within Within, and dials again after U(0, Within) from then on.
type GoAway struct {
	WithinSeconds int64  `json:"withinSeconds"`
	Reason        string `json:"reason,omitempty"`
}

// HeldRequest gives signed orders back to a hub that asked for them (POST
// /v1/held), at most MaxHeld at a time. The hub believes its own signature only.
type HeldRequest struct {
	Orders []Signed `json:"orders"`
}

// OrdersRequest opens the orders stream (POST /v1/orders).
type OrdersRequest struct {
	// Have maps Release UID to the sequence that the agent holds.
	Have map[string]int64 `json:"have"`
}

// Hello is the agent's first request of a session (POST /v1/hello).
type Hello struct {
	AgentVersion      string   `json:"agentVersion"`
	Features          []string `json:"features"`
	KubernetesVersion string   `json:"kubernetesVersion"`
	APIVersions       []string `json:"apiVersions"`
	TargetUID         string   `json:"targetUID"` // UID of kube-system
	// Now is the agent's clock: told, never used.
	Now time.Time `json:"now,omitzero"`
}

// HelloAnswer is the hub's answer.
type HelloAnswer struct {
	HubVersion string    `json:"hubVersion"`
	Hub        string    `json:"hub"`
	Now        time.Time `json:"now"`
	// OrderKeys are the Ed25519 public keys whose orders are to be accepted from now
	// on, old and new. HubCA are the certificates, PEM, that the hub may prove itself
	// with. Both replace what the agent has, and are stored before any order is taken.
	OrderKeys [][]byte `json:"orderKeys"`
	HubCA     []byte   `json:"hubCA,omitempty"`
}

// JoinRequest is the body of POST /v1/join. Both proofs are Ed25519 signatures
// over JoinProofInput. Without JoinKey and Proof it is a recovery: the agent that
// joined before asks for a certificate with its bound key.
type JoinRequest struct {
	Nonce      []byte `json:"nonce"`
	ClusterUID string `json:"clusterUID"`
	JoinKey    []byte `json:"joinKey,omitempty"` // token's public key
	BoundKey   []byte `json:"boundKey"`          // agent's long-lived Ed25519 public key
	ClientKey  []byte `json:"clientKey"`         // PKIX DER of the P-256 key to certify
	Proof      []byte `json:"proof,omitempty"`   // by the token's key
	BoundProof []byte `json:"boundProof"`        // by the bound key
}

// NonceAnswer is the answer of GET /v1/join: a nonce for one use within 60 s.
type NonceAnswer struct {
	Nonce []byte `json:"nonce"`
}

// RenewRequest asks for the next certificate over the live session (POST /v1/renew).
type RenewRequest struct {
	ClientKey []byte `json:"clientKey"`
}

// CertificateAnswer carries a certificate for the agent.
type CertificateAnswer struct {
	Certificate []byte    `json:"certificate"` // PEM
	HubCA       []byte    `json:"hubCA"`       // PEM, one or more
	NotAfter    time.Time `json:"notAfter"`
	Hub         string    `json:"hub"`
	OrderKeys   [][]byte  `json:"orderKeys"`
}

// Truth is True, False or Unknown.
type Truth string

// Values of Truth.
const (
	True    Truth = "True"
	False   Truth = "False"
	Unknown Truth = "Unknown"
)

// Finding is one of the three things that a report says of a Release. Reasons
// are those of api/core/v1alpha1.
type Finding struct {
	Status  Truth  `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Report is what the agent says of one Release. Idempotent: a newer Counter
// replaces an older one. Kept by the agent until acknowledged.
type Report struct {
	Release ReleaseRef `json:"release"`
	// Sequence of the order that it is about, 0 when nothing was accepted.
	Sequence int64 `json:"sequence"`
	// Counter grows with each report of a Release, over restarts too.
	Counter int64 `json:"counter"`
	// Refused is set when the newest order offered was not accepted: why. The
	// rest of the report is about the order that stays enforced.
	Refused *Finding `json:"refused,omitempty"`
	// RefusedSequence of that order.
	RefusedSequence int64 `json:"refusedSequence,omitempty"`
	// Settled: the operation has ended and nothing is in motion, so that this is
	// worth writing down at once.
	Settled bool `json:"settled"`
	// Done: a remove or release order was carried out.
	Done bool `json:"done,omitempty"`
	// AppliedRef is the digest of the render last applied in full.
	AppliedRef string  `json:"appliedRef,omitempty"`
	Applied    Finding `json:"applied"`
	InSync     Finding `json:"inSync"`
	Healthy    Finding `json:"healthy"`

	Counts     Counts      `json:"counts"`
	Exceptions []Exception `json:"exceptions,omitempty"`
	More       int32       `json:"more,omitempty"`
	Operation  *Operation  `json:"operation,omitempty"`
	// Hooks are the last runs of hooks, newest first, at most 32.
	Hooks []HookRun `json:"hooks,omitempty"`
	// Held is set while the order waits for its deletions to be confirmed.
	Held *HeldPrune `json:"held,omitempty"`
	// Inventory is sent with the first report after a render was applied, and
	// when it changed. An empty one says that nothing is left, nil says nothing.
	Inventory []InventoryEntry `json:"inventory,omitzero"`
	At        time.Time        `json:"at"`
}

// HookRun is one run of a hook. Phases and states are those of api/core/v1alpha1.
type HookRun struct {
	Hook       string     `json:"hook"`
	Phase      string     `json:"phase"`
	Run        string     `json:"run"`
	State      string     `json:"state"`
	Kind       string     `json:"kind,omitempty"`
	Namespace  string     `json:"namespace,omitempty"`
	Name       string     `json:"name,omitempty"`
	StartedAt  time.Time  `json:"startedAt,omitzero"`
	FinishedAt *time.Time `json:"finishedAt,omitempty"`
	Message    string     `json:"message,omitempty"`
}

// HeldPrune is what an order would delete.
type HeldPrune struct {
	Sequence int64     `json:"sequence"`
	Count    int32     `json:"count"`
	Total    int32     `json:"total"`
	Digest   string    `json:"digest"`
	Objects  []string  `json:"objects,omitempty"`
	Since    time.Time `json:"since"`
}

// Counts of objects.
type Counts struct {
	Total    int32 `json:"total"`
	Applied  int32 `json:"applied"`
	Healthy  int32 `json:"healthy"`
	Drifted  int32 `json:"drifted"`
	Failed   int32 `json:"failed"`
	Orphaned int32 `json:"orphaned"`
}

// Exception is one object that is not as it should be.
type Exception struct {
	Group     string    `json:"group,omitempty"`
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	Reason    string    `json:"reason"`
	Message   string    `json:"message,omitempty"`
	Since     time.Time `json:"since"`
}

// Operation is what the engine did or does. Types and phases are those of
// api/core/v1alpha1.
type Operation struct {
	Type       string     `json:"type"`
	Phase      string     `json:"phase"`
	Sequence   int64      `json:"sequence"`
	StartedAt  time.Time  `json:"startedAt"`
	FinishedAt *time.Time `json:"finishedAt,omitempty"`
	Deadline   *time.Time `json:"deadline,omitempty"`
	Message    string     `json:"message,omitempty"`
}

// InventoryEntry is one object on the target.
type InventoryEntry struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	Wave      int32  `json:"wave,omitempty"`
	Digest    string `json:"digest,omitempty"`
	Health    string `json:"health,omitempty"`
	Orphaned  bool   `json:"orphaned,omitempty"`
}

// ReportsRequest is the body of POST /v1/reports.
type ReportsRequest struct {
	Reports []Report `json:"reports"`
}

// ReportsAnswer acknowledges: Release UID to the counter that was taken over.
type ReportsAnswer struct {
	Taken map[string]int64 `json:"taken"`
	// Refused names reports about Releases that are not this Cluster's.
	Refused map[string]string `json:"refused,omitempty"`
}
