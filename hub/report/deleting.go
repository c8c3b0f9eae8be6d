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

// deletingBefore is what the controller last said of a deletion that is under way:
// a report, or silence, of the agent does not take it back.
func deletingBefore(release *v1alpha1.Release) *Finding {
	if release.DeletionTimestamp == nil {
		return nil
	}
	ready := meta.FindStatusCondition(release.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonDeleting && ready.Reason != v1alpha1.ReasonBlockedOnCluster {
		return nil
	}
	return &Finding{ready.Status, ready.Reason, ready.Message}
}
