// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/validation"
)

// SyncREST serves releases/sync: it sets the annotations that ask for a sync.
// Whoever may create releases/sync needs no right to update the Release.
type SyncREST struct {
	store *registry.Store
	clock clock.PassiveClock
}

var (
	_ rest.NamedCreater = &SyncREST{}
	_ rest.Storage      = &SyncREST{}
)

// New gives an empty request.
func (*SyncREST) New() runtime.Object { return &v1alpha1.SyncRequest{} }

// Destroy has nothing to do.
func (*SyncREST) Destroy() {}

// Create sets the annotations and answers with their value.
func (r *SyncREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	in, ok := obj.(*v1alpha1.SyncRequest)
	if !ok {
		return nil, apierrors.NewBadRequest("the body must be a SyncRequest")
	}
	request := in.DeepCopy()
	if errs := validation.SyncRequest(request, name); len(errs) > 0 {
		return nil, apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("SyncRequest").GroupKind(), name, errs)
	}
	if validate != nil {
		if err := validate(ctx, request.DeepCopy()); err != nil {
			return nil, err
		}
	}
	at := r.clock.Now().UTC().Format(time.RFC3339Nano)

	annotate := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		rel := from(old).DeepCopy()
		if rel.DeletionTimestamp != nil {
			return nil, apierrors.NewConflict(v1alpha1.Resource("releases"), name, errDeleting)
		}
		if rel.Annotations == nil {
			rel.Annotations = map[string]string{}
		}
		rel.Annotations[v1alpha1.AnnotationSyncRequestedAt] = at
		if request.Force {
			rel.Annotations[v1alpha1.AnnotationSyncForceRequestedAt] = at
		}
		return rel, nil
	})
	out, _, err := r.store.Update(ctx, name, annotate, nil, nil, false, &metav1.UpdateOptions{DryRun: options.DryRun})
	if err != nil {
		return nil, err
	}
	rel := from(out)
	request.Name, request.Namespace = rel.Name, rel.Namespace
	request.RequestedAt = at
	return request, nil
}
