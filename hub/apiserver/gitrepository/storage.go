// SPDX-License-Identifier: Apache-2.0

package gitrepository

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/source/v1alpha1"
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
}

// Storage is all that is served of GitRepositories.
type Storage struct {
	GitRepository *strategy.REST
	Status        *strategy.StatusREST
}

// NewStorage builds it. The watch cache begins to read at once.
func NewStorage(o Options) (*Storage, error) {
	check := secret.Check[*v1alpha1.GitRepository]{
		Authorizer: o.Authorizer, Resource: v1alpha1.Resource("gitrepositories"), References: references, Changed: changed,
	}
	main, status, err := strategy.Build(kind, strategy.Options{
		Typer: o.Typer, REST: o.REST, Shards: o.Shards, Table: tableConvertor(o.Clock),
		BeginCreate: check.BeginCreate, BeginUpdate: check.BeginUpdate,
	})
	if err != nil {
		return nil, err
	}
	return &Storage{GitRepository: main, Status: status}, nil
}

// references of a GitRepository to Secrets, each Secret once.
func references(g *v1alpha1.GitRepository) []secret.Reference {
	var out []secret.Reference
	for _, name := range g.Spec.SecretNames() {
		field := "spec.caSecretRef.name"
		if g.Spec.SecretRef != nil && g.Spec.SecretRef.Name == name {
			field = "spec.secretRef.name"
		}
		out = append(out, secret.Reference{Secret: name, Field: field})
	}
	return out
}
