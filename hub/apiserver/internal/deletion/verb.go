// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/strategy"
	"kumodo.io/convoy/hub/apiserver/validation"
)

// Confirm serves the subresource confirm of a kind: a deletion of the object that
// was held passes the next time. What is confirmed is kept in memory.
type Confirm[T strategy.Object] = strategy.Verb[*v1alpha1.ConfirmRequest, T]

var _ rest.NamedCreater = &Confirm[*v1alpha1.Release]{}

// ConfirmReleases serves releases/confirm.
func (g *Gate) ConfirmReleases(store *registry.Store) *Confirm[*v1alpha1.Release] {
	return confirm(store, g, g.CheckRelease)
}

// ConfirmClusters serves clusters/confirm.
func (g *Gate) ConfirmClusters(store *registry.Store) *Confirm[*v1alpha1.Cluster] {
	return confirm(store, g, g.CheckCluster)
}

func confirm[T strategy.Object](store *registry.Store, g *Gate, check func(context.Context, T, *v1alpha1.ConfirmRequest) (Checked, error)) *Confirm[T] {
	return &Confirm[T]{
		Store: store,
		Empty: func() *v1alpha1.ConfirmRequest { return &v1alpha1.ConfirmRequest{} },
		Kind:  v1alpha1.SchemeGroupVersion.WithKind("ConfirmRequest"),
		Check: validation.ConfirmRequest,
		Answer: func(ctx context.Context, r *v1alpha1.ConfirmRequest, object T, dryRun bool) error {
			checked, err := check(ctx, object, r)
			if err != nil {
				return err
			}
			var expires metav1.Time
			if expires, err = g.Confirm(checked, dryRun); err != nil {
				return err
			}
			r.ExpiresAt = &expires
			return nil
		},
	}
}
