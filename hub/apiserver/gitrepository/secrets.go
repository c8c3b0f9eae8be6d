// SPDX-License-Identifier: Apache-2.0

package gitrepository

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"kumodo.io/convoy/api/source/v1alpha1"
)

// secretCheck keeps the hub from being used to read Secrets for people who may
// not: whoever writes a reference must be allowed to get that Secret. The
// library calls it before the strategy, at create and at update, in a dry run
// too; the strategy then records the references as checked, and the hub reads no
// Secret that is not recorded.
type secretCheck struct {
	authorizer authorizer.UnconditionalAuthorizer
}

func (c secretCheck) beginCreate(ctx context.Context, obj runtime.Object, _ *metav1.CreateOptions) (registry.FinishFunc, error) {
	return nothing, c.check(ctx, from(obj))
}

func (c secretCheck) beginUpdate(ctx context.Context, obj, old runtime.Object, _ *metav1.UpdateOptions) (registry.FinishFunc, error) {
	g, before := from(obj), from(old)
	if !changed(g, before) {
		return nothing, nil
	}
	return nothing, c.check(ctx, g)
}

func nothing(context.Context, bool) {}

func (c secretCheck) check(ctx context.Context, g *v1alpha1.GitRepository) error {
	namespace := request.NamespaceValue(ctx)
	resource := v1alpha1.Resource("gitrepositories")
	for _, name := range g.Spec.SecretNames() {
		if name == "" {
			continue // refused by the validation, with its path
		}
		user, ok := request.UserFrom(ctx)
		if !ok {
			return apierrors.NewForbidden(resource, g.Name, errNoUser)
		}
		decision, reason, err := c.authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User:            user,
			Verb:            "get",
			APIVersion:      "v1",
			Resource:        "secrets",
			Namespace:       namespace,
			Name:            name,
			ResourceRequest: true,
		})
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("ask whether user %q may get Secret %q: %w", user.GetName(), name, err))
		}
		if decision != authorizer.DecisionAllow {
			return apierrors.NewForbidden(resource, g.Name, &deniedError{field: fieldOf(g, name), user: user.GetName(), namespace: namespace, secret: name, reason: reason})
		}
	}
	return nil
}

// deniedError says who may not read what, and which field asked for it.
type deniedError struct {
	field, user, namespace, secret, reason string
}

func (e *deniedError) Error() string {
	text := fmt.Sprintf("%s: user %q cannot get Secret %q in namespace %q, so cannot have the hub use it", e.field, e.user, e.secret, e.namespace)
	if e.reason != "" {
		text += ": " + e.reason
	}
	return text
}

func fieldOf(g *v1alpha1.GitRepository, name string) string {
	if g.Spec.SecretRef != nil && g.Spec.SecretRef.Name == name {
		return "spec.secretRef.name"
	}
	return "spec.caSecretRef.name"
}
