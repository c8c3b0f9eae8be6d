// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/strategy"
	"kumodo.io/convoy/hub/apiserver/validation"
)

// SyncREST serves releases/sync: it sets the annotations that ask for a sync.
// Whoever may create releases/sync needs no right to update the Release.
type SyncREST = strategy.Verb[*v1alpha1.SyncRequest, *v1alpha1.Release]

var _ rest.NamedCreater = &SyncREST{}

// newSync sets the annotations and answers with their value.
func newSync(store *registry.Store, now clock.PassiveClock) *SyncREST {
	return &SyncREST{
		Store: store,
		Empty: func() *v1alpha1.SyncRequest { return &v1alpha1.SyncRequest{} },
		Kind:  v1alpha1.SchemeGroupVersion.WithKind("SyncRequest"),
		Check: validation.SyncRequest,
		Change: func(_ context.Context, r *v1alpha1.SyncRequest, rel *v1alpha1.Release) error {
			if rel.DeletionTimestamp != nil {
				return apierrors.NewConflict(v1alpha1.Resource("releases"), rel.Name, errDeleting)
			}
			if rel.Annotations == nil {
				rel.Annotations = map[string]string{}
			}
			at := now.Now().UTC().Format(time.RFC3339Nano)
			rel.Annotations[v1alpha1.AnnotationSyncRequestedAt] = at
			if r.Force {
				rel.Annotations[v1alpha1.AnnotationSyncForceRequestedAt] = at
			}
			return nil
		},
		Answer: func(_ context.Context, r *v1alpha1.SyncRequest, rel *v1alpha1.Release, _ bool) error {
			r.RequestedAt = rel.Annotations[v1alpha1.AnnotationSyncRequestedAt]
			return nil
		},
	}
}
