// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels, annotations and finalizers of convoy. Only the hub and the engine
// write them; a render that carries one of the owner keys is refused.
const (
	// LabelShard is set by the API server on every write of a Cluster, Release
	// or source object; what a user writes there is replaced.
	LabelShard = "convoy.kumodo.io/shard"

	// LabelManaged marks an object on a target cluster as applied by convoy, so
	// that one label selector finds what a watch has to see. It proves nothing:
	// ownership is AnnotationOwner and the inventory.
	LabelManaged = "convoy.kumodo.io/managed"

	// AnnotationOwner names the owner of an object on a target cluster:
	// "<hub id>/<Release UID>".
	AnnotationOwner = "convoy.kumodo.io/owner"

	// AnnotationSyncWave orders the objects of one render: an integer, default 0.
	AnnotationSyncWave = "convoy.kumodo.io/sync-wave"

	// AnnotationArgoSyncWave is understood where AnnotationSyncWave is absent.
	AnnotationArgoSyncWave = "argocd.argoproj.io/sync-wave"

	// AnnotationHook makes an object of a render a hook: a list of phases, as in
	// PreSync,PostSync. helm.sh/hook is mapped onto it.
	AnnotationHook = "convoy.kumodo.io/hook"

	// AnnotationHookDeletePolicy says when the object of a hook is deleted: a list of
	// BeforeHookCreation (default), HookSucceeded, HookFailed.
	AnnotationHookDeletePolicy = "convoy.kumodo.io/hook-delete-policy"

	// AnnotationHookName is set by the hub on hooks that come from spec.lifecycle, and
	// AnnotationHookTimeout, in seconds, on those that have one.
	AnnotationHookName    = "convoy.kumodo.io/hook-name"
	AnnotationHookTimeout = "convoy.kumodo.io/hook-timeout"

	// AnnotationHookRun is set by the engine on the object of a hook: the run that made
	// it. As the owner keys, no render may carry it.
	AnnotationHookRun = "convoy.kumodo.io/hook-run"

	// AnnotationPrune, "false" on an object of a render or of the target, keeps it when
	// it leaves the render and when the Release is removed.
	AnnotationPrune = "convoy.kumodo.io/prune"

	// AnnotationOnce, "true" on an object, says that it is there to end: when it is
	// healthy, or a Job or a Pod has ended, it may go, and is not made again for that.
	AnnotationOnce = "convoy.kumodo.io/once"

	// AnnotationConfirmDeletions confirms a held prune: <sequence>/<digest>/<time, RFC
	// 3339>. The sync subresource writes it.
	AnnotationConfirmDeletions = "convoy.kumodo.io/confirm-deletions"

	// AnnotationHookRequested asks for something to be done about a run of a hook:
	// <action>/<time, RFC 3339 nanoseconds>/<run>/<hook>. The lifecycle subresource
	// writes it.
	AnnotationHookRequested = "convoy.kumodo.io/hook-requested"

	// AnnotationSyncRequestedAt asks for a sync now. RFC 3339, nanoseconds. The
	// sync subresource writes it; writing it by hand has the same effect.
	AnnotationSyncRequestedAt = "convoy.kumodo.io/sync-requested-at"

	// AnnotationSyncForceRequestedAt asks that the source is fetched, rendered
	// and applied again although nothing changed. RFC 3339, nanoseconds.
	AnnotationSyncForceRequestedAt = "convoy.kumodo.io/sync-force-requested-at"

	// AnnotationUninstallOnDelete, set to "true" on a namespace of the hub
	// before it is deleted, makes the deletion uninstall its Releases. Without
	// it, or when managedFields do not tell that it was set before, a deleted
	// namespace leaves every workload running.
	AnnotationUninstallOnDelete = "convoy.kumodo.io/uninstall-on-delete"

	// FinalizerRelease holds a deleted Release until its last order (remove or
	// release) is recorded, and carried out where the cluster is connected.
	FinalizerRelease = "release.core.convoy.kumodo.io/last-order"

	// FinalizerCluster is on every Cluster.
	FinalizerCluster = "cluster.core.convoy.kumodo.io/prune-releases"

	// FieldManager is the server-side apply manager on target clusters.
	FieldManager = "convoy"
)

// Condition types.
const (
	ConditionReady    = "Ready"
	ConditionRendered = "Rendered"
	ConditionApplied  = "Applied"
	ConditionInSync   = "InSync"
	ConditionHealthy  = "Healthy"
	// ConditionHubBehind is there only while it is True: the agent holds what this hub
	// has lost.
	ConditionHubBehind = "HubBehind"
	// ConditionDeleting is there only while a Cluster is being deleted with its
	// Releases: how far that is, and what blocks it.
	ConditionDeleting = "Deleting"
)

// Reasons of a Cluster's Ready condition.
const (
	ReasonConnected    = "Connected"
	ReasonNeverJoined  = "NeverJoined"
	ReasonDisconnected = "Disconnected"
	// ReasonProbeFailed and ReasonUnsupported: of the modes in which the hub dials.
	ReasonProbeFailed = "ProbeFailed"
	ReasonUnsupported = "Unsupported"
	// ReasonRevoked, ReasonCloneDetected and ReasonClusterConflict: an agent is
	// refused, and the message says what to do.
	ReasonRevoked         = "Revoked"
	ReasonCloneDetected   = "CloneDetected"
	ReasonClusterConflict = "ClusterConflict"

	// ReasonPruningReleases: the Releases of a Cluster go before it does.
	ReasonPruningReleases = "PruningReleases"
)

// Reasons of Events about a Cluster that are no reasons of a condition.
const (
	// ReasonTokenReused: a join token that was used was presented with other keys.
	ReasonTokenReused = "TokenReused"
	// ReasonSessionsDisplaced: sessions of one identity displace each other.
	ReasonSessionsDisplaced = "SessionsDisplaced"
	// ReasonLeftBehind: the agent lost its record of a Release, so that objects which were
	// to go stay. It is an Event of the Release too.
	ReasonLeftBehind = "LeftBehind"
)

// Reasons of a Release's conditions.
const (
	// Rendered.
	ReasonRendered         = "Rendered"
	ReasonSourceNotFound   = "SourceNotFound"   // the source object does not exist
	ReasonSourceNotChecked = "SourceNotChecked" // it references a Secret whose use was never checked
	ReasonFetchFailed      = "FetchFailed"      // remote not reachable, ref not found, credentials refused, too large
	ReasonPathNotFound     = "PathNotFound"     // content.path does not exist at that revision
	ReasonRenderFailed     = "RenderFailed"     // bad YAML, a limit, a render worker that died
	ReasonEmptyRender      = "EmptyRender"      // nothing to apply; what runs is kept
	ReasonStoreFailed      = "StoreFailed"
	ReasonValuesNotFound   = "ValuesNotFound" // a ConfigMap or Secret, or a key of it, that values or a mutation are taken from does not exist
	ReasonNoHostCluster    = "NoHostCluster"  // a Secret is referenced and there is no host to read it from

	// Applied.
	ReasonApplied         = "Applied"
	ReasonProgressing     = "Progressing"     // ordered, not settled yet
	ReasonClusterNotReady = "ClusterNotReady" // Cluster missing or not reachable
	ReasonDryRunFailed    = "DryRunFailed"    // the target rejected objects; nothing applied, the old render stays enforced
	ReasonApplyFailed     = "ApplyFailed"
	ReasonConflict        = "Conflict"      // fields owned by another manager, policy Fail
	ReasonOwnedByOther    = "OwnedByOther"  // an object belongs to another Release or hub
	ReasonRenderRefused   = "RenderRefused" // digest, size or content of the render is not what was ordered
	ReasonOrderRefused    = "OrderRefused"  // signature, cluster, sequence or required feature
	ReasonAgentTooOld     = "AgentTooOld"
	ReasonBlocked         = "Blocked"        // waits for an object; the message names it
	ReasonDeadline        = "DeadlinePassed" // waited as long as syncPolicy.timeout allows
	ReasonManualSync      = "ManualSync"     // automatic is false and nobody asked for a sync
	ReasonPruneFailed     = "PruneFailed"
	ReasonPruneHeld       = "PruneHeld"          // more deletions than the budget; waits for a confirmation
	ReasonHookFailed      = "HookFailed"         // a hook failed; the message names it
	ReasonForbidden       = "Forbidden"          // Cluster.spec.allowed does not permit it; the message names the rule
	ReasonWaitingForWave  = "WaitingForWave"     // a Release of a lower clusterWave is not ready
	ReasonDependency      = "DependencyNotReady" // a Release of dependsOn is not ready, missing, or part of a circle
	ReasonHandOver        = "HandOverPending"    // another Release, not ordered yet, has objects in its render that this one would delete
	ReasonSuspended       = "Suspended"          // spec.suspend
	ReasonRetriesEnded    = "RetriesExhausted"   // syncPolicy.retry.limit attempts failed
	ReasonRulesFailed     = "HealthRulesFailed"  // the health rules of the Release cannot be used
	ReasonRulesMissing    = "HealthRulesMissing" // a rule set that the Release names is not there

	// InSync.
	ReasonInSync  = "InSync"
	ReasonDrifted = "Drifted"
	// ReasonContested: somebody changes an object again and again; the message names who.
	ReasonContested = "Contested"
	// Healthy.
	ReasonHealthy  = "Healthy"
	ReasonDegraded = "Degraded"

	// Shared.
	ReasonUnknown     = "Unknown"
	ReasonNotReported = "NotReported"
	ReasonReady       = "Ready"
	ReasonDeleting    = "Deleting"

	// ReasonHubBehind: the order was given back by the agent; nothing is rolled back.
	ReasonHubBehind = "HubBehind"
	// ReasonClusterReset: the cluster was made anew; what was reported is void.
	ReasonClusterReset = "ClusterReset"
	// ReasonDeletionHeld: a deletion was refused and waits for a confirmation.
	ReasonDeletionHeld = "DeletionHeld"
	// ReasonBlockedOnCluster: the Release is being deleted and waits for its cluster.
	ReasonBlockedOnCluster = "BlockedOnCluster"

	// HeldByBudget and HeldByCollector are reasons of a held deletion.
	HeldByBudget    = "DeletionBudget"
	HeldByCollector = "GarbageCollector"
)
