// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/report"
)

// held writes down which deletions were refused.
type held struct{ reporter *report.Reporter }

func (h held) Held(ctx context.Context, release types.NamespacedName, uid types.UID, deletion v1alpha1.HeldDeletion) error {
	return h.reporter.Held(ctx, release, uid, deletion)
}

func (h held) HeldCluster(ctx context.Context, cluster types.NamespacedName, uid types.UID, deletion v1alpha1.HeldDeletion) error {
	return h.reporter.Cluster(ctx, cluster, uid, func(status *v1alpha1.ClusterStatus) error {
		status.HeldDeletion = &deletion
		return nil
	})
}

// terminating says whether a namespace of the host is being deleted.
func (h *hub) terminating(ctx context.Context, namespace string) (bool, error) {
	if h.namespaces == nil {
		return false, nil // there is no host
	}
	state, err := h.namespaces.State(ctx, namespace)
	return state.Terminating, err
}
