// SPDX-License-Identifier: Apache-2.0

package release

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/report"
)

// suspend is all that becomes of a Release that is suspended: nothing is fetched,
// rendered or applied, and what is asked for waits. There is one order, for an agent
// that repairs drift: it says that it is to report it instead, and names what is
// enforced already, under the terms that it has.
func (r *Reconciler) suspend(w *work) {
	now := r.Clock.Now()
	if !now.Before(w.note.due) {
		w.note.due = now.Add(interval(w.release))
	}
	w.outcome.Waiting = &report.Finding{
		Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSuspended,
		Message: "spec.suspend: nothing new is rendered or applied, and drift is not repaired; what runs is kept",
	}
	ordered, isOrdered := r.Orders.Ordered(w.release.UID)
	if !isOrdered || !ordered.Policy.Automatic || ordered.Policy.Suspended || w.release.Status.Adopted != nil {
		return
	}
	cluster, ok := r.Cache.Cluster(types.NamespacedName{Namespace: w.release.Namespace, Name: w.release.Spec.ClusterRef.Name})
	if !ok || !cluster.Status.Reachable || cluster.DeletionTimestamp != nil || types.UID(ordered.ClusterUID) != cluster.UID {
		w.again = true
		return
	}
	if !r.Orders.Compared(cluster.UID) {
		w.soon = true
		return
	}
	w.cluster = cluster
	terms := suspended(ordered)
	r.order(w, *enforced(ordered), terms, ordered)
}
