// SPDX-License-Identifier: Apache-2.0

package release

import (
	"math/rand/v2"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
)

// Changed is told of each change of a Release in the cache. Status, which only
// the hub writes, is no reason to look again.
func (r *Reconciler) Changed(old, next *corev1alpha1.Release) {
	if next == nil {
		r.wake(keyOf(old))
		r.tellPredecessors(keyOf(old))
		r.Add(keyOf(old))
		return
	}
	if r.predecessors.any(keyOf(next)) && (old == nil || inherits(old) != inherits(next)) {
		r.tellPredecessors(keyOf(next))
	}
	if r.waiters.any(keyOf(next)) && (old == nil || precedes(old) != precedes(next)) {
		r.wake(keyOf(next))
	}
	if old == nil || old.Generation != next.Generation || asks(old) != asks(next) ||
		(old.DeletionTimestamp == nil) != (next.DeletionTimestamp == nil) {
		r.Add(keyOf(next))
	}
}

// precedes is what of a Release matters to those that wait for it: whether it is ready,
// and whether it goes.
func precedes(release *corev1alpha1.Release) [2]bool {
	return [2]bool{notReady(release) == "", release.DeletionTimestamp != nil}
}

// asks are the annotations that ask for something.
func asks(release *corev1alpha1.Release) request {
	return request{
		sync: release.Annotations[corev1alpha1.AnnotationSyncRequestedAt], force: release.Annotations[corev1alpha1.AnnotationSyncForceRequestedAt],
		confirm: release.Annotations[corev1alpha1.AnnotationConfirmDeletions], hook: release.Annotations[corev1alpha1.AnnotationHookRequested],
	}
}

// ClusterChanged is told of each change of a Cluster in the cache. A change of a
// Cluster is no reason to look at its Releases, with exceptions: those that waited
// for it, and those that were ordered under another Cluster of the name, are looked
// at when it is back, those that are deleted when it is back or away, and all when it
// permits other things than before.
func (r *Reconciler) ClusterChanged(old, next *corev1alpha1.Cluster) {
	was := old != nil && old.Status.Reachable
	is := next != nil && next.Status.Reachable
	permits := old != nil && next != nil && !reflect.DeepEqual(old.Spec.Allowed, next.Spec.Allowed)
	if was == is && !permits {
		return
	}
	cluster := next
	if cluster == nil {
		cluster = old
	}
	list := r.Index.ReleasesByCluster(types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name})
	spread := min(time.Duration(len(list))*returnSpread, maxReturnSpread) + 1
	for _, release := range list {
		applied := meta.FindStatusCondition(release.Status.Conditions, corev1alpha1.ConditionApplied)
		waited := is && applied != nil && (applied.Reason == corev1alpha1.ReasonClusterNotReady || applied.Reason == corev1alpha1.ReasonSuspended)
		if is && !waited {
			order, ordered := r.Orders.Ordered(release.UID)
			waited = ordered && types.UID(order.ClusterUID) != cluster.UID
		}
		if waited || permits || release.DeletionTimestamp != nil {
			r.AddAfter(keyOf(release), rand.N(spread))
		}
	}
}

// SourceChanged is told of each change of a source in the cache.
func (r *Reconciler) SourceChanged(old, next sourcev1alpha1.Source) {
	object := next
	if object == nil {
		object = old
	}
	ready := func(status sourcev1alpha1.SourceStatus) bool {
		return meta.IsStatusConditionPresentAndEqual(status.Conditions, sourcev1alpha1.ConditionReady, metav1.ConditionTrue)
	}
	if old != nil && next != nil {
		was, is := old.SourceStatus(), next.SourceStatus()
		if old.GetGeneration() == next.GetGeneration() && was.Revision == is.Revision &&
			(ready(was) || !ready(is)) && len(was.CheckedSecrets) == len(is.CheckedSecrets) {
			return
		}
	}
	for _, release := range r.Index.ReleasesBySource(object.SourceKind(), types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}) {
		r.Add(keyOf(release))
	}
}

// Done is told when an agent has carried out the last order of a Release.
func (r *Reconciler) Done(uid types.UID) {
	if release, ok := r.Index.ReleaseByUID(uid); ok {
		r.Add(keyOf(release))
	}
}

func keyOf(release *corev1alpha1.Release) types.NamespacedName {
	return types.NamespacedName{Namespace: release.Namespace, Name: release.Name}
}
