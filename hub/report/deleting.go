// SPDX-License-Identifier: Apache-2.0

package report

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// SetDeleting puts into a Cluster's status, inside a mutate of Reporter.Cluster, how
// far its deletion with its Releases is, and what blocks it. It stays until another
// message is set, or none: an empty one.
func SetDeleting(status *v1alpha1.ClusterStatus, message string) {
	meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionDeleting)
	if message != "" {
		status.Conditions = append(status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionDeleting, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPruningReleases, Message: clip(message, maxMessage),
		})
	}
}

// deletingOf is what is known of a deletion that is under way, nil: none is. What was said
// of it last stays until somebody knows better: no write, whatever it is about, makes a
// Release ready that is being deleted.
func deletingOf(release *v1alpha1.Release) *Finding {
	if release.DeletionTimestamp == nil {
		return nil
	}
	ready := meta.FindStatusCondition(release.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonDeleting && ready.Reason != v1alpha1.ReasonBlockedOnCluster && ready.Reason != v1alpha1.ReasonHandOver {
		return &Finding{metav1.ConditionFalse, v1alpha1.ReasonDeleting, "it is being deleted; its last order is on its way to the agent"}
	}
	return &Finding{ready.Status, ready.Reason, ready.Message}
}
