// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
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
	case v1alpha1.ReasonProgressing, v1alpha1.ReasonDeleting, v1alpha1.ReasonManualSync, v1alpha1.ReasonClusterNotReady,
		v1alpha1.ReasonWaitingForWave, v1alpha1.ReasonSuspended:
		warning = false
	}
	r.options.Recorder.Transition(release, warning, next.Reason, next.Message)
}

// Notice tells people something of a Cluster by an Event. It does not block.
func (r *Reporter) Notice(cluster tunnel.ClusterID, reason, message string) {
	r.warn(About{"Cluster", keyOf(cluster), types.UID(cluster.UID)}, reason, message)
}

func (r *Reporter) warn(about About, reason, message string) {
	if r.options.Recorder != nil {
		r.options.Recorder.Warn(about, cleanReason(reason), clip(message, maxMessage))
	}
}

// HostRecorder writes Events to the host cluster. It never blocks and never
// fails its caller: Events are folded, limited for each object and, when the
// host is slow or the namespace is going, dropped.
type HostRecorder struct {
	client typedcorev1.EventsGetter
	going  Going
	// recorder is set while Run runs.
	recorder atomic.Pointer[record.EventRecorder]
}

// Going says whether a namespace of the host is being deleted, or gone: nothing
// can be made in it then, and asking for it would be refused.
type Going func(ctx context.Context, namespace string) (bool, error)

// NewHostRecorder makes a recorder. What comes before Run is dropped.
func NewHostRecorder(client typedcorev1.EventsGetter, going Going) *HostRecorder {
	return &HostRecorder{client: client, going: going}
}

// sink looks at the namespace just before each Event is written: many wait in
// front of it, and their namespace may be deleted meanwhile.
type sink struct {
	record.EventSink
	ctx   context.Context //nolint:containedctx // the sink's interface passes none; it ends with the recorder
	going Going
}

func (s sink) dropped(event *corev1.Event) bool {
	going, err := s.going(s.ctx, event.Namespace)
	// A host that does not answer will say so to the Event itself.
	return err == nil && going
}

// Create implements record.EventSink.
func (s sink) Create(event *corev1.Event) (*corev1.Event, error) {
	if s.dropped(event) {
		return event, nil
	}
	return s.EventSink.Create(event) //nolint:wrapcheck // the broadcaster looks at what the host said
}

// Patch implements record.EventSink.
func (s sink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	if s.dropped(event) {
		return event, nil
	}
	return s.EventSink.Patch(event, data) //nolint:wrapcheck // the broadcaster looks at what the host said
}

// Run writes Events until ctx ends.
func (h *HostRecorder) Run(ctx context.Context) error {
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	watch := broadcaster.StartRecordingToSink(sink{&typedcorev1.EventSinkImpl{Interface: h.client.Events("")}, ctx, h.going})
	defer watch.Stop()
	var recorder record.EventRecorder = broadcaster.NewRecorder(runtime.NewScheme(), corev1.EventSource{Component: "convoy-hub"})
	h.recorder.Store(&recorder)
	defer h.recorder.Store(nil)
	<-ctx.Done()
	return nil
}

// Transition records one.
func (h *HostRecorder) Transition(release *v1alpha1.Release, warning bool, reason, message string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	h.event(About{"Release", types.NamespacedName{Namespace: release.Namespace, Name: release.Name}, release.UID}, release.ResourceVersion, kind, reason, message)
}

// Warn records what people should know of an object.
func (h *HostRecorder) Warn(about About, reason, message string) {
	h.event(about, "", corev1.EventTypeWarning, reason, message)
}

func (h *HostRecorder) event(about About, version, kind, reason, message string) {
	recorder := h.recorder.Load()
	if recorder == nil {
		return
	}
	(*recorder).Event(&corev1.ObjectReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: about.Kind,
		Namespace: about.Namespace, Name: about.Name, UID: about.UID, ResourceVersion: version,
	}, kind, reason, message)
}
