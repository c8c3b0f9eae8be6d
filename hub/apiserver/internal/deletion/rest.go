// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"kumodo.io/convoy/hub/apiserver/internal/strategy"
)

// REST serves a kind whose deletions by users of the API pass the gate. The hub
// itself, in process, deletes through the registry's store and is not asked.
type REST struct {
	*strategy.REST
	Gate *Gate
}

var _ rest.StandardStorage = &REST{}

// Delete deletes an object, or marks it as deleted.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	var out runtime.Object
	var gone bool
	err := r.Gate.One(ctx, r.DefaultQualifiedResource, validate, options, func(validate Validation) (err error) {
		out, gone, err = r.Store.Delete(ctx, name, validate, options)
		return err
	})
	return out, gone, err
}

// DeleteCollection deletes all that match.
func (r *REST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, list *metainternalversion.ListOptions) (runtime.Object, error) {
	var out runtime.Object
	err := r.Gate.Many(ctx, r.DefaultQualifiedResource, validate, options, func(validate Validation) (err error) {
		out, err = r.Store.DeleteCollection(ctx, validate, options, list)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func dryRun(options *metav1.DeleteOptions) bool { return options != nil && len(options.DryRun) > 0 }
