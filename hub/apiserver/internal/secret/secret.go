// SPDX-License-Identifier: Apache-2.0

package secret

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
)

// errNoUser refuses a reference to a Secret that nobody answers for.
var errNoUser = errors.New("nobody is known who may get the Secret")

// Reference to a Secret of the object's namespace.
type Reference struct {
	// Secret is its name; one that is empty is left to the validation.
	Secret string
	// Field that names it, as in spec.secretRef.name.
	Field string
}

// Check of the references of one kind.
type Check[T metav1.Object] struct {
	Authorizer authorizer.UnconditionalAuthorizer
	Resource   schema.GroupResource
	// References of an object, each Secret once.
	References func(T) []Reference
	// Changed says whether the references have to be checked anew: they changed, or
	// what is done with the Secrets.
	Changed func(obj, old T) bool
}

// BeginCreate checks the references of a new object.
func (c Check[T]) BeginCreate(ctx context.Context, obj runtime.Object, _ *metav1.CreateOptions) (registry.FinishFunc, error) {
	t, ok := obj.(T)
	if !ok {
		return nothing, nil // refused by the strategy
	}
	return nothing, c.check(ctx, t)
}

// BeginUpdate checks the references of an object that changed.
func (c Check[T]) BeginUpdate(ctx context.Context, obj, old runtime.Object, _ *metav1.UpdateOptions) (registry.FinishFunc, error) {
	t, ok := obj.(T)
	before, same := old.(T)
	if !ok || !same || !c.Changed(t, before) {
		return nothing, nil
	}
	return nothing, c.check(ctx, t)
}

func nothing(context.Context, bool) {}

func (c Check[T]) check(ctx context.Context, obj T) error {
	namespace := request.NamespaceValue(ctx)
	for _, ref := range c.References(obj) {
		if ref.Secret == "" {
			continue
		}
		user, ok := request.UserFrom(ctx)
		if !ok {
			return apierrors.NewForbidden(c.Resource, obj.GetName(), errNoUser)
		}
		decision, reason, err := c.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User:            user,
			Verb:            "get",
			APIVersion:      "v1",
			Resource:        "secrets",
			Namespace:       namespace,
			Name:            ref.Secret,
			ResourceRequest: true,
		})
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("ask whether user %q may get Secret %q: %w", user.GetName(), ref.Secret, err))
		}
		if decision != authorizer.DecisionAllow {
			return apierrors.NewForbidden(c.Resource, obj.GetName(), &deniedError{ref: ref, user: user.GetName(), namespace: namespace, reason: reason})
		}
	}
	return nil
}

// deniedError says who may not read what, and which field asked for it.
type deniedError struct {
	ref                     Reference
	user, namespace, reason string
}

func (e *deniedError) Error() string {
	text := fmt.Sprintf("%s: user %q cannot get Secret %q in namespace %q, so cannot have the hub use it", e.ref.Field, e.user, e.ref.Secret, e.namespace)
	if e.reason != "" {
		text += ": " + e.reason
	}
	return text
}
