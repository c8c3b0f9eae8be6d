// SPDX-License-Identifier: Apache-2.0

// Package cluster stores and serves Clusters, with the subresources status and
// join. It stands before the flow: a Cluster says where Releases go.
package cluster

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
	c := from(obj)
	c.Status = v1alpha1.ClusterStatus{}
	c.Generation = 1
	strategy.SetShard(c, shard.Of(c.Namespace, c.Name, s.shards))
	strategy.EnsureFinalizer(c, v1alpha1.FinalizerCluster)
}

// PrepareForUpdate keeps the status and counts the generation up when the spec changed.
func (s mainStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	c, before := from(obj), from(old)
	c.Status = before.Status
	if !equality.Semantic.DeepEqual(c.Spec, before.Spec) {
		c.Generation = before.Generation + 1
	}
	strategy.SetShard(c, shard.Of(c.Namespace, c.Name, s.shards))
	strategy.EnsureFinalizer(c, v1alpha1.FinalizerCluster)
}

// Validate checks a new Cluster.
func (mainStrategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.Cluster(from(obj))
}

// ValidateUpdate checks a changed Cluster.
func (mainStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ClusterUpdate(from(obj), from(old))
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
	c, before := from(obj), from(old)
	c.Spec = before.Spec
	strategy.KeepMetadata(&c.ObjectMeta, &before.ObjectMeta)
	strategy.SetShard(c, shard.Of(c.Namespace, c.Name, s.shards))
}

// ValidateUpdate checks a changed status.
func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ClusterStatusUpdate(from(obj), from(old))
}

// GetResetFields names what a write of the status throws away.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return strategy.Reset(v1alpha1.SchemeGroupVersion.String(), fieldpath.MakePathOrDie("spec"))
}

// from gives the Cluster that the registry hands over as a general object. The
// zero Cluster for anything else fails validation; the registry is typed by its
// constructor, so that does not happen.
func from(obj runtime.Object) *v1alpha1.Cluster {
	if c, ok := obj.(*v1alpha1.Cluster); ok {
		return c
	}
	return &v1alpha1.Cluster{}
}

// attributes are what Clusters can be selected by.
func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	c, ok := obj.(*v1alpha1.Cluster)
	if !ok {
		return nil, nil, fmt.Errorf("%w: %T", ErrNotCluster, obj)
	}
	return c.Labels, strategy.ObjectFields(&c.ObjectMeta), nil
}
