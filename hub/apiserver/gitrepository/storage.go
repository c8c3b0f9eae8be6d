// SPDX-License-Identifier: Apache-2.0

package gitrepository

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/strategy"
)

// Options of the storage.
type Options struct {
	// Typer is the server's scheme.
	Typer runtime.ObjectTyper
	// REST says where in etcd the objects lie.
	REST generic.RESTOptionsGetter
	// Shards is the number of shards, at least 1.
	Shards int
	Clock  clock.PassiveClock
	// Authorizer is asked whether a user may get the Secrets that he refers to.
	Authorizer authorizer.UnconditionalAuthorizer
}

// Storage is all that is served of GitRepositories.
type Storage struct {
	GitRepository *REST
	Status        *StatusREST
}

// NewStorage builds it. The watch cache begins to read at once.
func NewStorage(o Options) (*Storage, error) {
	check := secretCheck{authorizer: o.Authorizer}
	main := mainStrategy{Base: strategy.NewBase(o.Typer), shards: o.Shards}
	store := &registry.Store{
		NewFunc:                   func() runtime.Object { return &v1alpha1.GitRepository{} },
		NewListFunc:               func() runtime.Object { return &v1alpha1.GitRepositoryList{} },
		PredicateFunc:             strategy.Matcher(attributes),
		DefaultQualifiedResource:  v1alpha1.Resource("gitrepositories"),
		SingularQualifiedResource: v1alpha1.Resource("gitrepository"),
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            tableConvertor(o.Clock),
		BeginCreate:               check.beginCreate,
		BeginUpdate:               check.beginUpdate,
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: o.REST, AttrFunc: attributes}); err != nil {
		return nil, fmt.Errorf("build the storage of Git repositories: %w", err)
	}
	status := *store
	status.UpdateStrategy = statusStrategy{main}
	status.ResetFieldsStrategy = statusStrategy{main}
	status.BeginCreate, status.BeginUpdate = nil, nil
	return &Storage{
		GitRepository: &REST{Store: store},
		Status:        &StatusREST{Store: &status},
	}, nil
}

// REST serves gitrepositories.
type REST struct {
	*registry.Store
}

var (
	_ rest.StandardStorage    = &REST{}
	_ rest.ShortNamesProvider = &REST{}
	_ rest.CategoriesProvider = &REST{}
)

// ShortNames of the resource. Not gitrepo: hosts that run Flux have that one.
func (*REST) ShortNames() []string { return []string{"cvgit"} }

// Categories that the resource belongs to.
func (*REST) Categories() []string { return []string{"convoy"} }

// StatusREST serves gitrepositories/status.
type StatusREST struct {
	Store *registry.Store
}

var (
	_ rest.Patcher             = &StatusREST{}
	_ rest.ResetFieldsStrategy = &StatusREST{}
)

// New gives an empty GitRepository.
func (*StatusREST) New() runtime.Object { return &v1alpha1.GitRepository{} }

// Destroy has nothing to do: the main storage closes what both share.
func (*StatusREST) Destroy() {}

// Get reads a GitRepository.
func (r *StatusREST) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	return r.Store.Get(ctx, name, o)
}

// Update changes the status; it never creates.
func (r *StatusREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool, o *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.Store.Update(ctx, name, info, create, update, false, o)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.Store.GetResetFields()
}

// ConvertToTable prints as the main resource does.
func (r *StatusREST) ConvertToTable(ctx context.Context, obj, opts runtime.Object) (*metav1.Table, error) {
	return r.Store.ConvertToTable(ctx, obj, opts)
}
