// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/deletion"
	"kumodo.io/convoy/hub/apiserver/internal/strategy"
	"kumodo.io/convoy/hub/apiserver/validation"
)

// SyncREST serves releases/sync: it sets the annotations that ask for a sync.
// Whoever may create releases/sync needs no right to update the Release.
type SyncREST = strategy.Verb[*v1alpha1.SyncRequest, *v1alpha1.Release]

var _ rest.NamedCreater = &SyncREST{}

// mayConfirm says whether a confirmation names the deletions that are held, and whether
// its user may give it.
func mayConfirm(ctx context.Context, gate *deletion.Gate, c *v1alpha1.DeletionConfirmation, rel *v1alpha1.Release) error {
	if c == nil {
		return nil
	}
	if err := gate.MayConfirm(ctx, rel); err != nil {
		return err
	}
	held := rel.Status.HeldPrune
	switch {
	case held == nil:
		return apierrors.NewConflict(v1alpha1.Resource("releases"), rel.Name, errNotHeld)
	case held.Sequence != c.Sequence || held.Digest != c.Digest:
		return apierrors.NewConflict(v1alpha1.Resource("releases"), rel.Name, errOtherPrune)
	}
	return nil
}

// newSync sets the annotations and answers with their value.
func newSync(store *registry.Store, now clock.PassiveClock, gate *deletion.Gate) *SyncREST {
	return &SyncREST{
		Store: store,
		Empty: func() *v1alpha1.SyncRequest { return &v1alpha1.SyncRequest{} },
		Kind:  v1alpha1.SchemeGroupVersion.WithKind("SyncRequest"),
		Check: validation.SyncRequest,
		Change: func(ctx context.Context, r *v1alpha1.SyncRequest, rel *v1alpha1.Release) error {
			switch {
			case rel.DeletionTimestamp != nil:
				return apierrors.NewConflict(v1alpha1.Resource("releases"), rel.Name, errDeleting)
			case rel.Spec.Suspend:
				return apierrors.NewConflict(v1alpha1.Resource("releases"), rel.Name, errSuspended)
			}
			if err := mayConfirm(ctx, gate, r.ConfirmDeletions, rel); err != nil {
				return err
			}
			if rel.Annotations == nil {
				rel.Annotations = map[string]string{}
			}
			at := now.Now().UTC().Format(time.RFC3339Nano)
			rel.Annotations[v1alpha1.AnnotationSyncRequestedAt] = at
			if r.Force {
				rel.Annotations[v1alpha1.AnnotationSyncForceRequestedAt] = at
			}
			if c := r.ConfirmDeletions; c != nil {
				rel.Annotations[v1alpha1.AnnotationConfirmDeletions] = fmt.Sprintf("%d/%s/%s", c.Sequence, c.Digest, at)
			}
			return nil
		},
		Answer: func(_ context.Context, r *v1alpha1.SyncRequest, rel *v1alpha1.Release, _ bool) error {
			r.RequestedAt = rel.Annotations[v1alpha1.AnnotationSyncRequestedAt]
			return nil
		},
	}
}
