// SPDX-License-Identifier: Apache-2.0

package source

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/utils/clock"

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

// Storage is all that is served of one kind.
type Storage struct {
	Main   *strategy.REST
	Status *strategy.StatusREST
}

// GitRepositories builds their storage. The watch cache begins to read at once.
func GitRepositories(o Options) (*Storage, error) { return build(gitRepository, o) }

// HelmRegistries builds their storage, as GitRepositories.
func HelmRegistries(o Options) (*Storage, error) { return build(helmRegistry, o) }

// OCIRegistries builds their storage, as GitRepositories.
func OCIRegistries(o Options) (*Storage, error) { return build(ociRegistry, o) }

func build[T object](k kind[T], o Options) (*Storage, error) {
	check := secret.Check[T]{
		Authorizer: o.Authorizer, Resource: k.strategy.Version.WithResource(k.strategy.Plural).GroupResource(),
		References: k.references, Changed: k.strategy.Changed,
	}
	main, status, err := strategy.Build(k.strategy, strategy.Options{
		Typer: o.Typer, REST: o.REST, Shards: o.Shards, Table: tableConvertor[T](o.Clock),
		BeginCreate: check.BeginCreate, BeginUpdate: check.BeginUpdate,
	})
	if err != nil {
		return nil, err
	}
	return &Storage{Main: main, Status: status}, nil
}
