// SPDX-License-Identifier: Apache-2.0

package release

import (
	"time"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// issued is what is remembered of an order that was made: the sequence that the status
// had before, and when.
type issued struct {
	over int64
	at   time.Time
}

// unheard says that cache and orders have not heard yet of the order that was made last.
// Whoever decides meanwhile decides by what was before, and makes the same order once
// more, which in manual mode undoes what somebody changed since. They hear of it within
// moments, by the watch; after unheardFor that is waited for no longer.
func (r *Reconciler) unheard(n *note, release *corev1alpha1.Release) bool {
	if n.issued.at.IsZero() || r.Clock.Since(n.issued.at) >= unheardFor {
		return false
	}
	if release.Status.Sequence <= n.issued.over {
		return true
	}
	ordered, ok := r.Orders.Ordered(release.UID)
	return ok && ordered.Sequence < release.Status.Sequence
}
