// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/deliver"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/pkg/tunnel"
)

// gate looks at the Cluster. While it is missing or away nothing is rendered
// and nothing ordered.
func (r *Reconciler) gate(w *work) bool {
	name := w.release.Spec.ClusterRef.Name
	cluster, ok := r.Cache.Cluster(types.NamespacedName{Namespace: w.release.Namespace, Name: name})
	if ok && cluster.Status.Reachable && cluster.DeletionTimestamp == nil {
		if r.Orders.Compared(cluster.UID) {
			w.cluster = cluster
			return true
		}
		// The hub may have been restored from an older copy, and the agent may hold what
		// it does not remember: nothing is ordered before the agent has said so. It has
		// no session yet, or its session is a moment old.
		if w.soon = r.wants(w, cluster); w.soon {
			// Until then nothing that it said before is true of what is wanted now.
			w.outcome.Waiting = &report.Finding{
				Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClusterNotReady,
				Message: fmt.Sprintf("the agent of Cluster %q has not said yet what it holds", name),
			}
		}
		return false
	}
	w.again = true
	ordered, isOrdered := r.Orders.Ordered(w.release.UID)
	if !waits(w, r.terms(w, w.release.Status.Render), ordered, isOrdered) {
		return false
	}
	message := fmt.Sprintf("there is no Cluster %q", name)
	if ok {
		message = fmt.Sprintf("the agent of Cluster %q has no session", name)
	}
	w.outcome.Waiting = &report.Finding{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClusterNotReady, Message: message}
	return false
}

// wants says whether there may be something to order, as far as is known without a
// render.
func (r *Reconciler) wants(w *work, cluster *v1alpha1.Cluster) bool {
	ordered, isOrdered := r.Orders.Ordered(w.release.UID)
	return w.rendering() || w.goOn || w.request.pending() || !isOrdered || types.UID(ordered.ClusterUID) != cluster.UID || !deliver.TermsOf(ordered).Equal(r.terms(w, w.release.Status.Render))
}

// adopted says what becomes of an order that the agent gave back to this hub, which
// had lost it: it stays, until a change of the inputs or of the spec, or a sync that
// somebody asked for since, goes on from there.
func (w *work) adopted() {
	status := &w.release.Status
	if status.Adopted == nil {
		return
	}
	if !w.request.since(status.Adopted.At.Time) {
		w.answered, w.request = w.request, request{}
	}
	w.asked = w.request.any() || w.release.Generation != status.ObservedGeneration
	w.goOn = w.asked || w.inputs != "" && w.inputs != status.Adopted.InputsHash
	w.held = !w.goOn
}

// since says whether one of the requests was made after a time. One whose value is no
// time was made by hand, and counts.
func (q request) since(t time.Time) bool {
	for _, value := range []string{q.sync, q.force} {
		if value == "" {
			continue
		}
		if asked, err := time.Parse(time.RFC3339Nano, value); err != nil || asked.After(t) {
			return true
		}
	}
	return false
}

// waits says whether something newer than what is applied is held back by a
// cluster that is away.
func waits(w *work, terms deliver.Terms, ordered tunnel.Order, isOrdered bool) bool {
	status := &w.release.Status
	switch {
	case status.AppliedRef == "", w.request.pending(), !isOrdered:
		return true
	case w.inputs != "" && w.inputs != status.InputsHash:
		return true
	case status.RenderRef != status.AppliedRef:
		return true
	}
	return !deliver.TermsOf(ordered).Equal(terms) && (terms.Policy.Automatic || ordered.Policy.Automatic)
}
