// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Copied is a request kind.
type Copied[R any] interface {
	Object
	DeepCopy() R
}

// Verb serves a subresource that is a verb: a create of a small request, which
// changes the object of that name and is answered with the request filled in.
// Being a create, it has the dry run, body limit, audit, openapi and strict
// decoding of any other.
type Verb[R Copied[R], T Object] struct {
	// Store that the object is changed through: of the main resource or the status.
	Store *registry.Store
	// Empty makes a request, Kind is its.
	Empty func() R
	Kind  schema.GroupVersionKind
	// Check the request for the object of that name, and drop from it what only an
	// answer has.
	Check func(r R, name string) field.ErrorList
	// Change the object, of which it is given a copy. It may be called several times,
	// each time with a fresh copy, and must not keep anything. Nil: the verb changes
	// nothing that is stored.
	Change func(ctx context.Context, r R, obj T) error
	// Answer fills the request in, once the object is stored as it says, or would be
	// in a dry run.
	Answer func(ctx context.Context, r R, stored T, dryRun bool) error
}

// New gives an empty request.
func (v *Verb[R, T]) New() runtime.Object { return v.Empty() }

// Destroy has nothing to do: the main storage closes what both share.
func (*Verb[R, T]) Destroy() {}

// Create carries the verb out.
func (v *Verb[R, T]) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	in, ok := obj.(R)
	if !ok {
		return nil, apierrors.NewBadRequest("the body must be a " + v.Kind.Kind)
	}
	r := in.DeepCopy()
	if errs := v.Check(r, name); len(errs) > 0 {
		return nil, apierrors.NewInvalid(v.Kind.GroupKind(), name, errs)
	}
	if validate != nil {
		if err := validate(ctx, r.DeepCopy()); err != nil {
			return nil, err
		}
	}
	out, err := v.change(ctx, name, r, options)
	if err != nil {
		return nil, err
	}
	stored, err := objectOf[T](out)
	if err != nil {
		return nil, err
	}
	r.SetName(stored.GetName())
	r.SetNamespace(stored.GetNamespace())
	if err := v.Answer(ctx, r, stored, len(options.DryRun) > 0); err != nil {
		return nil, err
	}
	return r, nil
}

// change stores the changed object and gives it back.
func (v *Verb[R, T]) change(ctx context.Context, name string, r R, options *metav1.CreateOptions) (runtime.Object, error) {
	if v.Change == nil {
		return v.Store.Get(ctx, name, &metav1.GetOptions{})
	}
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		t, err := objectOf[T](old.DeepCopyObject())
		if err != nil {
			return nil, err
		}
		return t, v.Change(ctx, r, t)
	})
	out, _, err := v.Store.Update(ctx, name, info, nil, nil, false, &metav1.UpdateOptions{DryRun: options.DryRun})
	return out, err
}

func objectOf[T Object](obj runtime.Object) (T, error) {
	t, ok := obj.(T)
	if !ok {
		return t, apierrors.NewInternalError(ErrKind)
	}
	return t, nil
}
