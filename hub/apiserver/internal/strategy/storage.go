// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Options of a kind's storage.
type Options struct {
	// Typer is the server's scheme.
	Typer runtime.ObjectTyper
	// REST says where in etcd the objects lie.
	REST generic.RESTOptionsGetter
	// Shards is the number of shards, at least 1.
	Shards int
	// Table prints.
	Table rest.TableConvertor
	// BeginCreate and BeginUpdate, if any, are asked before the strategy, in a dry
	// run too.
	BeginCreate registry.BeginCreateFunc
	BeginUpdate registry.BeginUpdateFunc
	// Index is a field of Kind.Fields that is indexed; empty: none is.
	Index string
}

// Build makes the storage of a kind and of its status. The watch cache begins to
// read at once.
func Build[T Object](kind *Kind[T], o Options) (*REST, *StatusREST, error) {
	main := mainStrategy[T]{Base: NewBase(o.Typer), Kind: kind, shards: o.Shards}
	resource := func(name string) schema.GroupResource { return kind.Version.WithResource(name).GroupResource() }
	options := &generic.StoreOptions{RESTOptions: o.REST, AttrFunc: kind.attributes}
	var index []string
	if o.Index != "" {
		// The field selector is indexed twice: the trigger spares watches, the index
		// spares lists, a walk through all objects.
		index = []string{o.Index}
		options.TriggerFunc = map[string]storage.IndexerFunc{o.Index: func(obj runtime.Object) string {
			return kind.Fields(kind.from(obj))[o.Index]
		}}
		options.Indexers = &cache.Indexers{storage.FieldIndex(o.Index): func(obj any) ([]string, error) {
			t, ok := obj.(T)
			if !ok {
				return nil, fmt.Errorf("%w: %T among %s", ErrKind, obj, kind.Plural)
			}
			return []string{kind.Fields(t)[o.Index]}, nil
		}}
	}
	store := &registry.Store{
		NewFunc:                   func() runtime.Object { return kind.New() },
		NewListFunc:               kind.NewList,
		PredicateFunc:             Matcher(kind.attributes, index...),
		DefaultQualifiedResource:  resource(kind.Plural),
		SingularQualifiedResource: resource(kind.Singular),
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            o.Table,
		BeginCreate:               o.BeginCreate,
		BeginUpdate:               o.BeginUpdate,
	}
	if err := store.CompleteWithOptions(options); err != nil {
		return nil, nil, fmt.Errorf("build the storage of %s: %w", kind.Plural, err)
	}
	status := *store
	status.UpdateStrategy = statusStrategy[T]{main}
	status.ResetFieldsStrategy = statusStrategy[T]{main}
	status.BeginCreate, status.BeginUpdate = nil, nil
	return &REST{Store: store, short: kind.ShortNames}, &StatusREST{Store: &status}, nil
}

// REST serves a kind.
type REST struct {
	*registry.Store
	short []string
}

var (
	_ rest.StandardStorage    = &REST{}
	_ rest.ShortNamesProvider = &REST{}
	_ rest.CategoriesProvider = &REST{}
)

// ShortNames of the resource.
func (r *REST) ShortNames() []string { return r.short }

// Categories that the resource belongs to.
func (*REST) Categories() []string { return []string{"convoy"} }

// StatusREST serves the subresource status of a kind.
type StatusREST struct {
	Store *registry.Store
}

var (
	_ rest.Patcher             = &StatusREST{}
	_ rest.ResetFieldsStrategy = &StatusREST{}
)

// New gives an empty object.
func (r *StatusREST) New() runtime.Object { return r.Store.New() }

// Destroy has nothing to do: the main storage closes what both share.
func (*StatusREST) Destroy() {}

// Get reads an object.
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
