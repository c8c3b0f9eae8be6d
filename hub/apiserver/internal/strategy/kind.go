// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"kumodo.io/convoy/hub/apiserver/shard"
)

// Object is one of our kinds.
type Object interface {
	runtime.Object
	metav1.Object
	metav1.ObjectMetaAccessor
}

// Kind is what is particular to a kind with a spec and a status; all else about
// its strategies and its storage is common. In every function, old is what is
// stored and must not be changed.
type Kind[T Object] struct {
	// New and NewList make empty objects.
	New     func() T
	NewList func() runtime.Object
	// Version of the API that it is served in, with the names of the resource.
	Version          schema.GroupVersion
	Plural, Singular string
	ShortNames       []string

	// Fields that objects can be selected by, beside name and namespace.
	Fields func(T) fields.Set
	// ClusterScoped objects have no namespace.
	ClusterScoped bool
	// ShardBy is the name of the Cluster or object that decides the shard; nil: the
	// kind is held whole by every hub and has no shard.
	ShardBy func(T) string
	// Finalizer that every object has; empty: none.
	Finalizer string

	// Changed says whether the spec did: the generation follows from it.
	Changed func(obj, old T) bool
	// Created gives a new object the status that it starts with.
	Created func(obj T)
	// Updated keeps the status in a write of the main resource.
	Updated func(obj, old T)
	// Reported keeps the spec, and what of the status is not the writer's, in a
	// write of the status.
	Reported func(obj, old T)
	// KeptStatus are the paths that Reported keeps.
	KeptStatus []fieldpath.Path

	// Validate a new object, a changed one, and a changed status.
	Validate       func(obj T) field.ErrorList
	ValidateUpdate func(obj, old T) field.ErrorList
	ValidateStatus func(obj, old T) field.ErrorList
	// Warnings about what is legal and unwise; nil: none.
	Warnings func(obj T) []string
}

// from gives the object that the registry hands over as a general one. The empty
// object for anything else fails validation; the registry is typed by its
// constructor, so that does not happen.
func (k *Kind[T]) from(obj runtime.Object) T {
	if t, ok := obj.(T); ok {
		return t
	}
	return k.New()
}

// attributes are what objects of the kind can be selected by.
func (k *Kind[T]) attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	t, ok := obj.(T)
	if !ok {
		return nil, nil, fmt.Errorf("%w: %T among %s", ErrKind, obj, k.Plural)
	}
	set := ObjectFields(metaOf(t))
	if k.Fields != nil {
		for name, value := range k.Fields(t) {
			set[name] = value
		}
	}
	return t.GetLabels(), set, nil
}

// metaOf is the metadata itself: our kinds embed it.
func metaOf(obj Object) *metav1.ObjectMeta {
	if m, ok := obj.GetObjectMeta().(*metav1.ObjectMeta); ok {
		return m
	}
	return &metav1.ObjectMeta{}
}

// mainStrategy is that of the main resource.
type mainStrategy[T Object] struct {
	Base
	*Kind[T]
	shards int
}

// NamespaceScoped unless the kind says otherwise.
func (s mainStrategy[T]) NamespaceScoped() bool { return !s.ClusterScoped }

func (s mainStrategy[T]) own(obj T) {
	if s.ShardBy == nil {
		return
	}
	SetShard(obj, shard.Of(obj.GetNamespace(), s.ShardBy(obj), s.shards))
}

func (s mainStrategy[T]) finalize(obj T) {
	if s.Finalizer != "" {
		EnsureFinalizer(obj, s.Finalizer)
	}
}

// PrepareForCreate drops the status, starts the generation and sets what is ours.
func (s mainStrategy[T]) PrepareForCreate(_ context.Context, obj runtime.Object) {
	t := s.from(obj)
	s.Created(t)
	t.SetGeneration(1)
	s.own(t)
	s.finalize(t)
}

// PrepareForUpdate keeps the status and counts the generation up when the spec changed.
func (s mainStrategy[T]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	t, before := s.from(obj), s.from(old)
	s.Updated(t, before)
	if s.Changed(t, before) {
		t.SetGeneration(before.GetGeneration() + 1)
	}
	s.own(t)
	s.finalize(t)
}

// Validate checks a new object.
func (s mainStrategy[T]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return s.Kind.Validate(s.from(obj))
}

// ValidateUpdate checks a changed object.
func (s mainStrategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return s.Kind.ValidateUpdate(s.from(obj), s.from(old))
}

// WarningsOnCreate tells what is legal and unwise.
func (s mainStrategy[T]) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	if s.Warnings == nil {
		return nil
	}
	return s.Warnings(s.from(obj))
}

// WarningsOnUpdate tells what is legal and unwise.
func (s mainStrategy[T]) WarningsOnUpdate(ctx context.Context, obj, _ runtime.Object) []string {
	return s.WarningsOnCreate(ctx, obj)
}

// GetResetFields names what a write of the main resource throws away.
func (s mainStrategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return Reset(s.Version.String(), fieldpath.MakePathOrDie("status"))
}

// statusStrategy is that of the subresource status.
type statusStrategy[T Object] struct {
	mainStrategy[T]
}

// PrepareForUpdate keeps everything but the status.
func (s statusStrategy[T]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	t, before := s.from(obj), s.from(old)
	s.Reported(t, before)
	KeepMetadata(metaOf(t), metaOf(before))
	s.own(t)
}

// ValidateUpdate checks a changed status.
func (s statusStrategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return s.ValidateStatus(s.from(obj), s.from(old))
}

// WarningsOnUpdate has none: what the spec says is not this user's doing.
func (statusStrategy[T]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// GetResetFields names what a write of the status throws away.
func (s statusStrategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return Reset(s.Version.String(), append([]fieldpath.Path{fieldpath.MakePathOrDie("spec")}, s.KeptStatus...)...)
}
