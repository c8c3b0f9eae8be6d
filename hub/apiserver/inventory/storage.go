// SPDX-License-Identifier: Apache-2.0

// Package inventory stores ReleaseInventories and serves them for reading and
// deleting: only the hub writes them, in process. It stands at the end of the
// flow, where the hub records what was applied.
package inventory

import (
	"context"
	"errors"
	"fmt"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/strategy"
	"kumodo.io/convoy/hub/apiserver/internal/table"
	"kumodo.io/convoy/hub/apiserver/validation"
)

// ErrNotInventory is returned when an object of another kind comes in.
var ErrNotInventory = errors.New("not a ReleaseInventory")

// Options of the storage.
type Options struct {
	// Typer is the server's scheme.
	Typer runtime.ObjectTyper
	// REST says where in etcd the objects lie.
	REST  generic.RESTOptionsGetter
	Clock clock.PassiveClock
}

// REST serves releaseinventories without create, update and patch.
type REST struct {
	// Store is for the hub itself, which writes inventories in process.
	Store *registry.Store
}

// NewREST builds it. There is no watch cache: an inventory in it takes more
// memory than its Release, and readers get them by name.
func NewREST(o Options) (*REST, error) {
	s := inventoryStrategy{strategy.NewBase(o.Typer)}
	store := &registry.Store{
		NewFunc:                   func() runtime.Object { return &v1alpha1.ReleaseInventory{} },
		NewListFunc:               func() runtime.Object { return &v1alpha1.ReleaseInventoryList{} },
		PredicateFunc:             strategy.Matcher(attributes),
		DefaultQualifiedResource:  v1alpha1.Resource("releaseinventories"),
		SingularQualifiedResource: v1alpha1.Resource("releaseinventory"),
		CreateStrategy:            s,
		UpdateStrategy:            s,
		DeleteStrategy:            s,
		TableConvertor:            tableConvertor(o.Clock),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: o.REST, AttrFunc: attributes}); err != nil {
		return nil, fmt.Errorf("build the storage of inventories: %w", err)
	}
	return &REST{Store: store}, nil
}

var (
	_ rest.Getter               = &REST{}
	_ rest.Lister               = &REST{}
	_ rest.Watcher              = &REST{}
	_ rest.GracefulDeleter      = &REST{}
	_ rest.CollectionDeleter    = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
	_ rest.ShortNamesProvider   = &REST{}
)

// ShortNames of the resource. It is in no category: `kubectl get convoy` would
// read thousands of entries to print a line.
func (*REST) ShortNames() []string { return []string{"relinv"} }

// New gives an empty inventory.
func (r *REST) New() runtime.Object { return r.Store.New() }

// NewList gives an empty list.
func (r *REST) NewList() runtime.Object { return r.Store.NewList() }

// Destroy closes the storage.
func (r *REST) Destroy() { r.Store.Destroy() }

// NamespaceScoped is true.
func (*REST) NamespaceScoped() bool { return true }

// GetSingularName of the resource.
func (r *REST) GetSingularName() string { return r.Store.GetSingularName() }

// Get reads one.
func (r *REST) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	return r.Store.Get(ctx, name, o)
}

// List reads many.
func (r *REST) List(ctx context.Context, o *metainternalversion.ListOptions) (runtime.Object, error) {
	return r.Store.List(ctx, o)
}

// Watch follows them.
func (r *REST) Watch(ctx context.Context, o *metainternalversion.ListOptions) (watch.Interface, error) {
	return r.Store.Watch(ctx, o)
}

// Delete removes one. Nothing happens on the target: the agent's own inventory decides.
func (r *REST) Delete(ctx context.Context, name string, v rest.ValidateObjectFunc, o *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return r.Store.Delete(ctx, name, v, o)
}

// DeleteCollection removes many.
func (r *REST) DeleteCollection(ctx context.Context, v rest.ValidateObjectFunc, o *metav1.DeleteOptions, l *metainternalversion.ListOptions) (runtime.Object, error) {
	return r.Store.DeleteCollection(ctx, v, o, l)
}

// ConvertToTable prints them.
func (r *REST) ConvertToTable(ctx context.Context, obj, opts runtime.Object) (*metav1.Table, error) {
	return r.Store.ConvertToTable(ctx, obj, opts)
}

type inventoryStrategy struct {
	strategy.Base
}

// PrepareForCreate starts the generation. The shard label is the writer's: it
// copies the Release's.
func (inventoryStrategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	from(obj).Generation = 1
}

// PrepareForUpdate has nothing to do: there is no status to keep.
func (inventoryStrategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}

// Validate checks a new inventory.
func (inventoryStrategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ReleaseInventory(from(obj))
}

// ValidateUpdate checks a changed inventory.
func (inventoryStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ReleaseInventoryUpdate(from(obj), from(old))
}

// from gives the inventory that the registry hands over as a general object.
func from(obj runtime.Object) *v1alpha1.ReleaseInventory {
	if i, ok := obj.(*v1alpha1.ReleaseInventory); ok {
		return i
	}
	return &v1alpha1.ReleaseInventory{}
}

func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	i, ok := obj.(*v1alpha1.ReleaseInventory)
	if !ok {
		return nil, nil, fmt.Errorf("%w: %T", ErrNotInventory, obj)
	}
	return i.Labels, strategy.ObjectFields(&i.ObjectMeta), nil
}

func tableConvertor(c clock.PassiveClock) rest.TableConvertor {
	type column = table.Column[*v1alpha1.ReleaseInventory]
	return table.New(c,
		column{Name: "Objects", Integer: true, Description: "Number of entries.", Cell: func(i *v1alpha1.ReleaseInventory) any {
			return int64(len(i.Entries))
		}},
		column{Name: "Render", Description: "Digest of the render that it is the inventory of, shortened.", Cell: func(i *v1alpha1.ReleaseInventory) any {
			return table.Digest(i.RenderRef)
		}},
		column{Name: "Sequence", Wide: true, Integer: true, Description: "Sequence of the order that applied it.", Cell: func(i *v1alpha1.ReleaseInventory) any {
			return i.Sequence
		}},
	)
}
