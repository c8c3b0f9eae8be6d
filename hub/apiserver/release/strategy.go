// SPDX-License-Identifier: Apache-2.0

// Package release stores and serves Releases, with the subresources status and
// sync. It stands before the flow: a Release starts it.
package release

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/scheme"
	"kumodo.io/convoy/hub/apiserver/internal/strategy"
	"kumodo.io/convoy/hub/apiserver/shard"
	"kumodo.io/convoy/hub/apiserver/validation"
)

type mainStrategy struct {
	strategy.Base
	shards int
}

// PrepareForCreate drops the status, starts the generation and sets what is ours.
func (s mainStrategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	r := from(obj)
	r.Status = v1alpha1.ReleaseStatus{}
	r.Generation = 1
	s.setShard(r)
	strategy.EnsureFinalizer(r, v1alpha1.FinalizerRelease)
}

// PrepareForUpdate keeps the status and counts the generation up when the spec changed.
func (s mainStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	r, before := from(obj), from(old)
	r.Status = before.Status
	if !equality.Semantic.DeepEqual(r.Spec, before.Spec) {
		r.Generation = before.Generation + 1
	}
	s.setShard(r)
	strategy.EnsureFinalizer(r, v1alpha1.FinalizerRelease)
}

// setShard: a Release has its Cluster's, so that a cluster's Releases stay together.
func (s mainStrategy) setShard(r *v1alpha1.Release) {
	strategy.SetShard(r, shard.Of(r.Namespace, r.Spec.ClusterRef.Name, s.shards))
}

// Validate checks a new Release.
func (mainStrategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.Release(from(obj))
}

// ValidateUpdate checks a changed Release.
func (mainStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ReleaseUpdate(from(obj), from(old))
}

// GetResetFields names what a write of the main resource throws away.
func (mainStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return strategy.Reset(v1alpha1.SchemeGroupVersion.String(), fieldpath.MakePathOrDie("status"))
}

type statusStrategy struct {
	mainStrategy
}

// PrepareForUpdate keeps everything but the status.
func (s statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	r, before := from(obj), from(old)
	r.Spec = before.Spec
	strategy.KeepMetadata(&r.ObjectMeta, &before.ObjectMeta)
	s.setShard(r)
}

// ValidateUpdate checks a changed status.
func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ReleaseStatusUpdate(from(obj), from(old))
}

// GetResetFields names what a write of the status throws away.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return strategy.Reset(v1alpha1.SchemeGroupVersion.String(), fieldpath.MakePathOrDie("spec"))
}

// from gives the Release that the registry hands over as a general object. The
// zero Release for anything else fails validation; the registry is typed by its
// constructor, so that does not happen.
func from(obj runtime.Object) *v1alpha1.Release {
	if r, ok := obj.(*v1alpha1.Release); ok {
		return r
	}
	return &v1alpha1.Release{}
}

// attributes are what Releases can be selected by.
func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	r, ok := obj.(*v1alpha1.Release)
	if !ok {
		return nil, nil, fmt.Errorf("%w: %T", ErrNotRelease, obj)
	}
	set := strategy.ObjectFields(&r.ObjectMeta)
	set[scheme.FieldClusterRefName] = r.Spec.ClusterRef.Name
	return r.Labels, set, nil
}

// clusterOf is the value of the indexed field.
func clusterOf(obj runtime.Object) string {
	return from(obj).Spec.ClusterRef.Name
}

// clusterIndex is the same for the watch cache's index.
func clusterIndex(obj any) ([]string, error) {
	r, ok := obj.(*v1alpha1.Release)
	if !ok {
		return nil, fmt.Errorf("%w: %T", ErrNotRelease, obj)
	}
	return []string{r.Spec.ClusterRef.Name}, nil
}
