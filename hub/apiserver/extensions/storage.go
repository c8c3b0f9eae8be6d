// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/hub/apiserver/internal/strategy"
)

// Options of the storage.
type Options struct {
	// Typer is the server's scheme.
	Typer runtime.ObjectTyper
	// REST says where in etcd the objects lie.
	REST  generic.RESTOptionsGetter
	Clock clock.PassiveClock
}

// Storage is all that is served of one kind.
type Storage struct {
	Main   *strategy.REST
	Status *strategy.StatusREST
}

// HealthRuleSets builds their storage. The watch cache begins to read at once.
func HealthRuleSets(o Options) (*Storage, error) { return build(namespaced, o) }

// GlobalHealthRuleSets builds their storage, as HealthRuleSets.
func GlobalHealthRuleSets(o Options) (*Storage, error) { return build(global, o) }

func build[T ruleSet](kind *strategy.Kind[T], o Options) (*Storage, error) {
	main, status, err := strategy.Build(kind, strategy.Options{Typer: o.Typer, REST: o.REST, Table: tableConvertor[T](o.Clock)})
	if err != nil {
		return nil, err
	}
	return &Storage{Main: main, Status: status}, nil
}
