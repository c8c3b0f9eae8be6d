// SPDX-License-Identifier: Apache-2.0

package release

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/deletion"
	"kumodo.io/convoy/hub/apiserver/internal/scheme"
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
	// Previews are what releases/preview answers with.
	Previews Previews
	// Observations are what releases/health, diff and history answer with.
	Observations Observations
}

// Storage is all that is served of Releases.
type Storage struct {
	Release   *deletion.REST
	Status    *strategy.StatusREST
	Sync      *SyncREST
	Confirm   *deletion.Confirm[*v1alpha1.Release]
	Preview   *PreviewREST
	Lifecycle *LifecycleREST
	Health    *AskedREST
	History   *AskedREST
	Diff      *DiffREST
}

// NewStorage builds it. The watch cache begins to read at once.
func NewStorage(o Options) (*Storage, error) {
	check := secret.Check[*v1alpha1.Release]{
		Authorizer: o.Authorizer, Resource: v1alpha1.Resource("releases"), References: references, Changed: usesSecretsAnew,
	}
	guard := &guard{secrets: check, gate: o.Gate}
	main, status, err := strategy.Build(kind, strategy.Options{
		Typer: o.Typer, REST: o.REST, Shards: o.Shards, Table: tableConvertor(o.Clock), Index: scheme.FieldClusterRefName,
		BeginCreate: guard.BeginCreate, BeginUpdate: guard.BeginUpdate,
	})
	if err != nil {
		return nil, err
	}
	preview := &PreviewREST{store: main.Store, previews: o.Previews, secrets: check}
	guard.store = main.Store
	return &Storage{
		Release: &deletion.REST{REST: main, Gate: o.Gate}, Status: status,
		Sync: newSync(main.Store, o.Clock, o.Gate), Confirm: o.Gate.ConfirmReleases(status.Store),
		Preview: preview, Lifecycle: &LifecycleREST{store: main.Store, clock: o.Clock},
		Health: newHealth(main.Store, o.Observations), History: newHistory(main.Store, o.Observations), Diff: &DiffREST{preview: preview, diff: o.Observations.Diff},
	}, nil
}
