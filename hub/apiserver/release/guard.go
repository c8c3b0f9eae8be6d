// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/deletion"
	"kumodo.io/convoy/hub/apiserver/internal/scheme"
	"kumodo.io/convoy/hub/apiserver/internal/secret"
	"kumodo.io/convoy/hub/precedence"
)

// guard looks at each write of a Release for what cannot be said of it alone: whether
// its user may use what it refers to, and confirm what it confirms, and whether it
// closes a circle of Releases that wait for each other.
type guard struct {
	secrets secret.Check[*v1alpha1.Release]
	gate    *deletion.Gate
	// store of all Releases; set once it is made.
	store *registry.Store
}

// BeginCreate looks at a new Release.
func (g *guard) BeginCreate(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (registry.FinishFunc, error) {
	if release, ok := obj.(*v1alpha1.Release); ok && (len(release.Spec.DependsOn) > 0 || release.Spec.ClusterWave != 0) {
		if err := g.circle(ctx, release); err != nil {
			return nil, err
		}
	}
	return g.secrets.BeginCreate(ctx, obj, options)
}

// BeginUpdate looks at one that changed.
func (g *guard) BeginUpdate(ctx context.Context, obj, old runtime.Object, options *metav1.UpdateOptions) (registry.FinishFunc, error) {
	release, ok := obj.(*v1alpha1.Release)
	before, same := old.(*v1alpha1.Release)
	if ok && same {
		// The annotation is written by the subresource sync, for the same user; by hand it
		// has the same effect, and needs the same right.
		confirms := release.Annotations[v1alpha1.AnnotationConfirmDeletions]
		if confirms != "" && confirms != before.Annotations[v1alpha1.AnnotationConfirmDeletions] {
			if err := g.gate.MayConfirm(ctx, release); err != nil {
				return nil, err
			}
		}
		if release.Spec.ClusterWave != before.Spec.ClusterWave || !slices.Equal(release.Spec.DependsOn, before.Spec.DependsOn) {
			if err := g.circle(ctx, release); err != nil {
				return nil, err
			}
		}
	}
	return g.secrets.BeginUpdate(ctx, obj, old, options)
}

// circle refuses a Release that would wait for itself.
func (g *guard) circle(ctx context.Context, release *v1alpha1.Release) error {
	circle := precedence.Circle(release, stored{
		get: func(name string) (runtime.Object, error) {
			return g.store.Get(ctx, name, &metav1.GetOptions{ResourceVersion: "0"})
		},
		list: func(cluster string) (runtime.Object, error) {
			return g.store.List(ctx, &internalversion.ListOptions{
				FieldSelector: fields.OneTermEqualSelector(scheme.FieldClusterRefName, cluster), ResourceVersion: "0",
			})
		},
	})
	if circle == "" {
		return nil
	}
	at := field.NewPath("spec", "dependsOn")
	names := make([]string, len(release.Spec.DependsOn))
	for i, on := range release.Spec.DependsOn {
		names[i] = on.Name
	}
	if len(names) == 0 {
		at = field.NewPath("spec", "clusterWave")
	}
	return apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("Release").GroupKind(), release.Name, field.ErrorList{
		field.Invalid(at, fmt.Sprintf("%v", names), "closes a circle, and nothing in it could ever be applied: "+circle),
	})
}

// stored are the Releases of the namespace that is written to, as the watch cache has
// them. What cannot be read is taken for missing: a circle that is not seen here is
// named in the conditions of those in it.
type stored struct {
	get, list func(name string) (runtime.Object, error)
}

// Release of that name.
func (s stored) Release(key types.NamespacedName) (*v1alpha1.Release, bool) {
	found, err := s.get(key.Name)
	release, ok := found.(*v1alpha1.Release)
	return release, ok && err == nil
}

// ReleasesByCluster are those of a Cluster.
func (s stored) ReleasesByCluster(cluster types.NamespacedName) []*v1alpha1.Release {
	found, err := s.list(cluster.Name)
	list, ok := found.(*v1alpha1.ReleaseList)
	if !ok || err != nil {
		return nil
	}
	out := make([]*v1alpha1.Release, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out
}
