// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// Observations say of a Release what is not stored with it.
type Observations interface {
	Health(ctx context.Context, namespace, name string) (*v1alpha1.ReleaseHealth, error)
	// Diff of the stored Release, or of one that is not stored with what was applied.
	Diff(ctx context.Context, namespace, name string, unsaved *v1alpha1.Release) (*v1alpha1.ReleaseDiff, error)
	History(ctx context.Context, namespace, name string) (*v1alpha1.ReleaseHistory, error)
}

// AskedREST serves a subresource that is answered by an observer: GET, and nothing else.
type AskedREST struct {
	store *registry.Store
	empty func() runtime.Object
	ask   func(ctx context.Context, namespace, name string) (runtime.Object, error)
}

var _ rest.Getter = &AskedREST{}

// New implements rest.Storage.
func (a *AskedREST) New() runtime.Object { return a.empty() }

// Destroy has nothing to do: the main storage closes what both share.
func (*AskedREST) Destroy() {}

// Get asks about a Release that is there.
func (a *AskedREST) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	found, err := a.store.Get(ctx, name, o)
	if err != nil {
		return nil, err
	}
	release, err := releaseOf(found)
	if err != nil {
		return nil, err
	}
	return a.ask(ctx, release.Namespace, name)
}

func newHealth(store *registry.Store, observer Observations) *AskedREST {
	return &AskedREST{
		store: store, empty: func() runtime.Object { return &v1alpha1.ReleaseHealth{} },
		ask: func(ctx context.Context, namespace, name string) (runtime.Object, error) {
			return answer(observer.Health(ctx, namespace, name))
		},
	}
}

func newHistory(store *registry.Store, observer Observations) *AskedREST {
	return &AskedREST{
		store: store, empty: func() runtime.Object { return &v1alpha1.ReleaseHistory{} },
		ask: func(ctx context.Context, namespace, name string) (runtime.Object, error) {
			return answer(observer.History(ctx, namespace, name))
		},
	}
}

// answer keeps a nil pointer from becoming an object.
func answer[T runtime.Object](made T, err error) (runtime.Object, error) {
	if err != nil {
		return nil, err
	}
	return made, nil
}

// DiffREST serves releases/diff: GET of what is stored, POST of a Release that is not
// stored, or not like that, which is rendered as for a preview. Both show what objects
// hold, so the user must be allowed to get the Secrets that the Release names, as for a
// preview.
type DiffREST struct {
	preview *PreviewREST
	diff    func(ctx context.Context, namespace, name string, unsaved *v1alpha1.Release) (*v1alpha1.ReleaseDiff, error)
}

var (
	_ rest.Getter          = &DiffREST{}
	_ rest.NamedCreater    = &DiffREST{}
	_ rest.StorageMetadata = &DiffREST{}
)

// New implements rest.Storage: what a POST takes.
func (*DiffREST) New() runtime.Object { return &v1alpha1.Release{} }

// Destroy has nothing to do: the main storage closes what both share.
func (*DiffREST) Destroy() {}

// Get compares what runs with the stored Release.
func (d *DiffREST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	stored, err := d.preview.permitted(ctx, name)
	if err != nil {
		return nil, err
	}
	return answer(d.diff(ctx, stored.Namespace, name, nil))
}

// ProducesObject implements rest.StorageMetadata: what both verbs answer.
func (*DiffREST) ProducesObject(string) any { return v1alpha1.ReleaseDiff{} }

// ProducesMIMETypes implements rest.StorageMetadata: the usual ones.
func (*DiffREST) ProducesMIMETypes(string) []string { return nil }

// Create compares the Release of the body, which must be valid and is not stored.
func (d *DiffREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	in, ok := obj.(*v1alpha1.Release)
	if !ok {
		return nil, apierrors.NewBadRequest("the body must be a Release")
	}
	release, err := d.preview.unsaved(ctx, name, in, validate)
	if err != nil {
		return nil, err
	}
	return answer(d.diff(ctx, release.Namespace, name, release))
}
