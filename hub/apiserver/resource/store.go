// SPDX-License-Identifier: Apache-2.0

// Package resource gives the hub typed access, in process, to the objects that
// its own API server stores: the same registry that serves HTTP, with the same
// validation and conflict detection, without TLS, admission, audit and field
// managers. It stands beside the whole flow: the cache reads through it, and
// report writes status through it.
package resource

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Object is one of our kinds.
type Object interface {
	runtime.Object
	metav1.Object
}

// Store reads and writes one kind. T is a pointer type, L the pointer type of its
// list. Errors are those of the API: apierrors.IsNotFound, IsConflict, IsInvalid.
type Store[T Object, L runtime.Object] struct {
	main     *registry.Store
	status   *registry.Store
	defaults runtime.ObjectDefaulter
}

// New makes one. status is nil for a kind without that subresource; defaults
// fills in what the maker of a new object left out.
func New[T Object, L runtime.Object](main, status *registry.Store, defaults runtime.ObjectDefaulter) *Store[T, L] {
	return &Store[T, L]{main: main, status: status, defaults: defaults}
}

// ListOptions select what List gives. The zero value selects everything.
type ListOptions struct {
	// Namespace, or all when empty.
	Namespace string
	// Fields and Labels, or everything when nil.
	Fields fields.Selector
	Labels labels.Selector
	// Cached allows an answer from the watch cache that may be some milliseconds
	// old; it costs no read of etcd.
	Cached bool
}

// Get reads one object, as new as it is in etcd.
func (s *Store[T, L]) Get(ctx context.Context, key types.NamespacedName) (T, error) {
	return s.get(ctx, key, "")
}

// GetCached reads one object from the watch cache, at no cost; it may be some
// milliseconds old. The object is shared: do not change it.
func (s *Store[T, L]) GetCached(ctx context.Context, key types.NamespacedName) (T, error) {
	return s.get(ctx, key, "0")
}

func (s *Store[T, L]) get(ctx context.Context, key types.NamespacedName, version string) (T, error) {
	out, err := s.main.Get(in(ctx, key.Namespace), key.Name, &metav1.GetOptions{ResourceVersion: version})
	return typed[T](out, err)
}

// List reads objects. Those of a cached list are shared: do not change them.
func (s *Store[T, L]) List(ctx context.Context, o ListOptions) (L, error) {
	options := &metainternalversion.ListOptions{FieldSelector: o.Fields, LabelSelector: o.Labels}
	if o.Cached {
		options.ResourceVersion = "0"
	}
	out, err := s.main.List(in(ctx, o.Namespace), options)
	return typed[L](out, err)
}

// Create stores a new object in the namespace that it names and gives it back as
// stored, with the defaults filled in. It leaves obj as it is.
func (s *Store[T, L]) Create(ctx context.Context, obj T) (T, error) {
	fresh := obj.DeepCopyObject()
	s.defaults.Default(fresh)
	out, err := s.main.Create(in(ctx, obj.GetNamespace()), fresh, nil, &metav1.CreateOptions{})
	return typed[T](out, err)
}

// Update reads the object, lets mutate change a copy and stores it, again and
// again until no other write came between: mutate may be called several times
// and must start from what it is given each time. An error of mutate ends it and
// comes back as it is. A change of nothing writes nothing. uid, if not empty, is
// that of the object meant: one made anew under the name is a conflict.
//
// The status is not changed by it: see UpdateStatus.
func (s *Store[T, L]) Update(ctx context.Context, key types.NamespacedName, uid types.UID, mutate func(T) error) (T, error) {
	return s.update(ctx, s.main, key, uid, mutate)
}

// UpdateStatus is Update for the status, and changes nothing else.
func (s *Store[T, L]) UpdateStatus(ctx context.Context, key types.NamespacedName, uid types.UID, mutate func(T) error) (T, error) {
	if s.status == nil {
		var none T
		return none, fmt.Errorf("%w: %s", ErrNoStatus, s.main.DefaultQualifiedResource)
	}
	return s.update(ctx, s.status, key, uid, mutate)
}

func (s *Store[T, L]) update(ctx context.Context, store *registry.Store, key types.NamespacedName, uid types.UID, mutate func(T) error) (T, error) {
	out, _, err := store.Update(in(ctx, key.Namespace), key.Name, &change[T]{uid: uid, mutate: mutate}, nil, nil, false, &metav1.UpdateOptions{})
	return typed[T](out, err)
}

// Put stores the object, whether or not one is there: mutate is given the object
// that is there, or create's result when there is none.
func (s *Store[T, L]) Put(ctx context.Context, key types.NamespacedName, create func() T, mutate func(T) error) (T, error) {
	for {
		out, err := s.Update(ctx, key, "", mutate)
		if !apierrors.IsNotFound(err) {
			return out, err
		}
		obj := create()
		obj.SetNamespace(key.Namespace)
		obj.SetName(key.Name)
		if err := mutate(obj); err != nil {
			return out, err
		}
		out, err = s.Create(ctx, obj)
		if !apierrors.IsAlreadyExists(err) {
			return out, err
		}
	}
}

// Delete removes the object, or marks it as deleted when it has finalizers. uid,
// if not empty, is that of the object meant. One that is not there is no error.
func (s *Store[T, L]) Delete(ctx context.Context, key types.NamespacedName, uid types.UID) error {
	options := &metav1.DeleteOptions{}
	if uid != "" {
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	_, _, err := s.main.Delete(in(ctx, key.Namespace), key.Name, rest.ValidateAllObjectFunc, options)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// RemoveFinalizer takes one finalizer off a deleted object, which is gone then if
// it was the last. An object that is not there, or that has no such finalizer, is
// no error.
func (s *Store[T, L]) RemoveFinalizer(ctx context.Context, key types.NamespacedName, uid types.UID, finalizer string) error {
	_, err := s.Update(ctx, key, uid, func(obj T) error {
		var rest []string
		for _, f := range obj.GetFinalizers() {
			if f != finalizer {
				rest = append(rest, f)
			}
		}
		obj.SetFinalizers(rest)
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// change is one read-modify-write.
type change[T Object] struct {
	uid    types.UID
	mutate func(T) error
}

// Preconditions implements rest.UpdatedObjectInfo.
func (c *change[T]) Preconditions() *metav1.Preconditions {
	if c.uid == "" {
		return nil
	}
	return &metav1.Preconditions{UID: &c.uid}
}

// UpdatedObject implements rest.UpdatedObjectInfo.
func (c *change[T]) UpdatedObject(_ context.Context, old runtime.Object) (runtime.Object, error) {
	obj, err := typed[T](old.DeepCopyObject(), nil)
	if err != nil {
		return nil, err
	}
	if err := c.mutate(obj); err != nil {
		return nil, err
	}
	return obj, nil
}

// in makes the context that the registry wants.
func in(ctx context.Context, namespace string) context.Context {
	return request.WithNamespace(ctx, namespace)
}

func typed[T runtime.Object](obj runtime.Object, err error) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	out, ok := obj.(T)
	if !ok {
		return none, fmt.Errorf("%w: %T instead of %T", ErrUnexpectedType, obj, none)
	}
	return out, nil
}
