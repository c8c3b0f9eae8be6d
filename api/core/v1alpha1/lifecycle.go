// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// HookPhase says when a hook runs.
type HookPhase string

// Phases of hooks, as they stand in spec.lifecycle and in the annotation
// convoy.kumodo.io/hook.
const (
	// HookPreSync runs before the first object of a render is applied. When it fails,
	// nothing is.
	HookPreSync HookPhase = "PreSync"
	// HookPostSync runs when all objects are applied and healthy.
	HookPostSync HookPhase = "PostSync"
	// HookSyncFailed runs when a sync has failed.
	HookSyncFailed HookPhase = "SyncFailed"
	// HookPreDelete runs before the removal of a Release deletes its first object.
	HookPreDelete HookPhase = "PreDelete"
	// HookPostDelete runs when the removal has deleted all objects.
	HookPostDelete HookPhase = "PostDelete"
)

// HookDeletePolicy says when the object of a hook is deleted.
type HookDeletePolicy string

// Policies for the objects of hooks, as they stand in spec.lifecycle and in the
// annotation convoy.kumodo.io/hook-delete-policy.
const (
	// HookBeforeCreation deletes what an earlier run left, and waits until it is gone,
	// before the hook is made. The default.
	HookBeforeCreation HookDeletePolicy = "BeforeHookCreation"
	// HookSucceeded deletes it when all hooks of the phase have succeeded.
	HookSucceeded HookDeletePolicy = "HookSucceeded"
	// HookFailed deletes it when it has failed.
	HookFailed HookDeletePolicy = "HookFailed"
)

// Lifecycle are the hooks of a Release.
type Lifecycle struct {
	// hooks, at most 32. They are rendered on the hub; their strings may hold templates
	// over cluster and self, as those of mutations.
	// +optional
	// +listType=map
	// +listMapKey=name
	Hooks []Hook `json:"hooks,omitempty"`
}

// Hook is one object that is made, and has to succeed, at a point of a sync.
type Hook struct {
	// name of the hook in this Release.
	Name string `json:"name"`
	// phases in which it runs: PreSync, PostSync, SyncFailed, PreDelete, PostDelete.
	// +listType=set
	Phases []HookPhase `json:"phases"`
	// wave orders the hooks of one phase; default 0.
	// +optional
	Wave int32 `json:"wave,omitempty"`
	// object to make: a Job, a Pod, or any kind whose health can be told.
	// +kubebuilder:pruning:PreserveUnknownFields
	Object runtime.RawExtension `json:"object"`
	// deletePolicy: BeforeHookCreation (default), HookSucceeded, HookFailed.
	// +optional
	// +listType=set
	DeletePolicy []HookDeletePolicy `json:"deletePolicy,omitempty"`
	// timeout of one run; default: that of the sync.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// HookState is how far a run of a hook is.
type HookState string

// States of a run of a hook.
const (
	HookRunning   HookState = "Running"
	HookDone      HookState = "Succeeded"
	HookBroken    HookState = "Failed"
	HookSkipped   HookState = "Skipped"
	HookCancelled HookState = "Aborted"
)

// HookRun is one run of a hook.
type HookRun struct {
	// hook is its name: of spec.lifecycle, or Kind/namespace/name of an object of the
	// render that is one by annotation.
	Hook string `json:"hook"`
	// phase it ran in.
	Phase HookPhase `json:"phase"`
	// run tells runs of a hook apart: it names the order it ran for, and the attempt.
	Run string `json:"run"`
	// state: Running, Succeeded, Failed, Skipped, Aborted.
	State HookState `json:"state"`
	// kind, namespace and objectName of the object that it made.
	// +optional
	Kind string `json:"kind,omitempty"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// +optional
	ObjectName string `json:"objectName,omitempty"`
	// startedAt, by the edge's clock.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// finishedAt, by the edge's clock.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// message for people; at most 512 bytes.
	// +optional
	Message string `json:"message,omitempty"`
}

// HeldPrune is what a sync would delete, and does not before it is confirmed.
type HeldPrune struct {
	// sequence of the order that waits.
	Sequence int64 `json:"sequence"`
	// count of objects that would be deleted, of total in the inventory.
	Count int32 `json:"count"`
	// total of objects in the last inventory.
	Total int32 `json:"total"`
	// digest of the list of what would be deleted.
	Digest string `json:"digest"`
	// objects: the first of them, for people, at most 10.
	// +optional
	// +listType=atomic
	Objects []string `json:"objects,omitempty"`
	// since when it waits, by the edge's clock.
	Since metav1.Time `json:"since"`
}

// HookAction is what a person wants of a run of a hook.
type HookAction string

// Actions on hooks.
const (
	// HookRetry runs a hook that failed once more, for the order that it failed for.
	HookRetry HookAction = "retry"
	// HookSkip goes on as if the hook had succeeded.
	HookSkip HookAction = "skip"
	// HookAbort ends a run, and the sync with it.
	HookAbort HookAction = "abort"
)

// ReleaseLifecycle is what GET and PUT of releases/NAME/lifecycle give and take, and
// what POST takes. GET fills spec and runs. PUT replaces spec.lifecycle of the Release
// by spec. POST acts on one run, named by request.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ReleaseLifecycle struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata: that of the Release.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is spec.lifecycle of the Release.
	// +optional
	Spec Lifecycle `json:"spec,omitempty"`
	// runs are the last runs of hooks, newest first.
	// +optional
	// +listType=atomic
	Runs []HookRun `json:"runs,omitempty"`
	// request is what a POST asks for.
	// +optional
	Request *HookRequest `json:"request,omitempty"`
}

// HookRequest asks for something to be done about a run of a hook.
type HookRequest struct {
	// hook is its name, as in runs.
	Hook string `json:"hook"`
	// run of it, as in runs.
	Run string `json:"run"`
	// action: retry, skip, abort.
	Action HookAction `json:"action"`
}
