// SPDX-License-Identifier: Apache-2.0

// Package hub serves the one Hub, which is not stored, with its verbs backup and
// restore. It stands beside the flow, where platform engineers look after the hub
// itself.
package hub

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/table"
)

// Options of what is served.
type Options struct {
	// Status of the hub now.
	Status func(ctx context.Context) (v1alpha1.HubStatus, error)
	// Backup reads and writes what is stored; nil: both verbs answer that the hub is
	// not ready for them.
	Backup Backup
	Clock  clock.PassiveClock
}

// Backup reads and writes what a hub has stored. hub/backup is one.
type Backup interface {
	Read(ctx context.Context, cursor string) (pieces []v1alpha1.BackupPiece, next string, err error)
	Write(ctx context.Context, hubID, backup string, pieces []v1alpha1.BackupPiece, last bool) error
}

// REST serves hubs for reading.
type REST struct {
	status  func(ctx context.Context) (v1alpha1.HubStatus, error)
	started metav1.Time
	rest.TableConvertor
}

var (
	_ rest.Getter               = &REST{}
	_ rest.Lister               = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.Storage              = &REST{}
	_ rest.SingularNameProvider = &REST{}
	_ rest.CategoriesProvider   = &REST{}
)

// NewREST makes it.
func NewREST(o Options) *REST {
	type column = table.Column[*v1alpha1.Hub]
	return &REST{
		status: o.Status, started: metav1.NewTime(o.Clock.Now()).Rfc3339Copy(),
		TableConvertor: table.New(o.Clock,
			column{Name: "ID", Description: "The hub's name in certificates, orders and owner annotations.", Cell: func(h *v1alpha1.Hub) any { return h.Status.HubID }},
			column{Name: "Version", Description: "Version of the program.", Cell: func(h *v1alpha1.Hub) any { return h.Status.Version }},
			column{Name: "Gateway", Description: "Where agents dial.", Cell: func(h *v1alpha1.Hub) any { return h.Status.GatewayURL }},
			column{Name: "Old-Keys", Integer: true, Description: "Keys that are still accepted and used for nothing new.", Cell: func(h *v1alpha1.Hub) any {
				old := int64(0)
				for _, key := range h.Status.Keys {
					if key.Old {
						old++
					}
				}
				return old
			}},
		),
	}
}

func (r *REST) hub(ctx context.Context) (*v1alpha1.Hub, error) {
	hub := &v1alpha1.Hub{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.HubName, CreationTimestamp: r.started}}
	if r.status == nil {
		return hub, nil
	}
	var err error
	if hub.Status, err = r.status(ctx); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return hub, nil
}

// New implements rest.Storage.
func (*REST) New() runtime.Object { return &v1alpha1.Hub{} }

// Destroy implements rest.Storage.
func (*REST) Destroy() {}

// NewList implements rest.Lister.
func (*REST) NewList() runtime.Object { return &v1alpha1.HubList{} }

// NamespaceScoped implements rest.Scoper.
func (*REST) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (*REST) GetSingularName() string { return "hub" }

// Categories implements rest.CategoriesProvider: none, since the Hub is not what
// users of a namespace look for.
func (*REST) Categories() []string { return nil }

// Get implements rest.Getter.
func (r *REST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if name != v1alpha1.HubName {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("hubs"), name)
	}
	return r.hub(ctx)
}

// List implements rest.Lister.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	list := &v1alpha1.HubList{}
	hub, err := r.hub(ctx)
	if err != nil {
		return nil, err
	}
	if options != nil {
		if s := options.LabelSelector; s != nil && !s.Empty() {
			return list, nil
		}
		if s := options.FieldSelector; s != nil {
			if name, exact := s.RequiresExactMatch("metadata.name"); exact && name != hub.Name {
				return list, nil
			}
		}
	}
	list.Items = []v1alpha1.Hub{*hub}
	return list, nil
}
