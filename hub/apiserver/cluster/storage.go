// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/deletion"
	"kumodo.io/convoy/hub/apiserver/internal/secret"
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
	// Gate that deletions pass.
	Gate *deletion.Gate
	// Join is what the join subresource answers.
	Join JoinInfo
}

// Storage is all that is served of Clusters.
type Storage struct {
	Cluster *deletion.REST
	Status  *strategy.StatusREST
	Join    *JoinREST
	Revoke  *RevokeREST
	Confirm *deletion.Confirm[*v1alpha1.Cluster]
}

// NewStorage builds it. The watch cache begins to read at once.
func NewStorage(o Options) (*Storage, error) {
	g := guard{secret.Check[*v1alpha1.Cluster]{
		Authorizer: o.Authorizer, Resource: v1alpha1.Resource("clusters"), References: references, Changed: redirected,
	}}
	main, status, err := strategy.Build(kind, strategy.Options{
		Typer: o.Typer, REST: o.REST, Shards: o.Shards, Table: tableConvertor(o.Clock),
		BeginCreate: g.beginCreate, BeginUpdate: g.secrets.BeginUpdate,
	})
	if err != nil {
		return nil, err
	}
	return &Storage{
		Cluster: &deletion.REST{REST: main, Gate: o.Gate}, Status: status,
		Join: newJoin(status.Store, o.Join, o.Clock), Revoke: newRevoke(status.Store, o.Clock),
		Confirm: o.Gate.ConfirmClusters(status.Store),
	}, nil
}
