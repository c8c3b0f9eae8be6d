// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// record tells of a change of Ready: one Event for a transition, none for the
// steps on the way to it.
func (r *Reporter) record(release *v1alpha1.Release, before []metav1.Condition) {
	if r.options.Recorder == nil {
		return
	}
	next := meta.FindStatusCondition(release.Status.Conditions, v1alpha1.ConditionReady)
	old := meta.FindStatusCondition(before, v1alpha1.ConditionReady)
	if next == nil || old != nil && old.Status == next.Status && old.Reason == next.Reason {
		return
	}
	warning := next.Status == metav1.ConditionFalse
	switch next.Reason {
	case v1alpha1.ReasonProgressing, v1alpha1.ReasonDeleting, v1alpha1.ReasonManualSync, v1alpha1.ReasonClusterNotReady:
		warning = false
	}
	r.options.Recorder.Transition(release, warning, next.Reason, next.Message)
}

// HostRecorder writes Events to the host cluster. It never blocks and never
// fails its caller: Events are folded, limited for each object and, when the
// host is slow or the namespace is going, dropped.
type HostRecorder struct {
	client typedcorev1.EventsGetter
	// recorder is set while Run runs.
	recorder atomic.Pointer[record.EventRecorder]
}

// NewHostRecorder makes a recorder. What comes before Run is dropped.
func NewHostRecorder(client typedcorev1.EventsGetter) *HostRecorder {
	return &HostRecorder{client: client}
}

// Run writes Events until ctx ends.
func (h *HostRecorder) Run(ctx context.Context) error {
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	watch := broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: h.client.Events("")})
	defer watch.Stop()
	var recorder record.EventRecorder = broadcaster.NewRecorder(runtime.NewScheme(), corev1.EventSource{Component: "convoy-hub"})
	h.recorder.Store(&recorder)
	defer h.recorder.Store(nil)
	<-ctx.Done()
	return nil
}

// Transition records one.
func (h *HostRecorder) Transition(release *v1alpha1.Release, warning bool, reason, message string) {
	recorder := h.recorder.Load()
	if recorder == nil {
		return
	}
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	(*recorder).Event(&corev1.ObjectReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Release",
		Namespace: release.Namespace, Name: release.Name, UID: release.UID, ResourceVersion: release.ResourceVersion,
	}, kind, reason, message)
}
