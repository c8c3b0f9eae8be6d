// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"time"

	clientcache "k8s.io/client-go/tools/cache"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver"
	"kumodo.io/convoy/hub/controller/release"
	"kumodo.io/convoy/hub/render"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/hub/source"
)

// sources are the Release controller's view of the coordinator.
type sources struct{ coordinator *source.Coordinator }

func (s sources) Resolve(ctx context.Context, want source.Want, maxAge time.Duration) (source.Revision, error) {
	revision, err := s.coordinator.Resolve(ctx, want, maxAge)
	return revision, named(err)
}

func (s sources) Snapshot(ctx context.Context, want source.Want, revision source.Revision) (render.Source, error) {
	content, err := s.coordinator.Snapshot(ctx, want, revision)
	if err != nil {
		return nil, named(err)
	}
	return content, nil
}

// Others looks up digests and charts for one revision of a source.
func (s sources) Others(want source.Want, revision source.Revision, secrets, checked []string) release.Others {
	return others{coordinator: s.coordinator, want: want, revision: revision, secrets: secrets, checked: checked}
}

type others struct {
	coordinator      *source.Coordinator
	want             source.Want
	revision         source.Revision
	secrets, checked []string
}

// Charts that a chart of the source lacks.
func (i others) Charts(ctx context.Context, path string) (render.Source, error) {
	found, err := i.coordinator.Dependencies(ctx, i.want, i.revision, path)
	if err != nil {
		return nil, named(err)
	}
	return found, nil
}

func (i others) Digest(ctx context.Context, reference string) (string, error) {
	digest, err := i.coordinator.Image(ctx, source.ImageWant{
		Namespace: i.want.Object.GetNamespace(), Reference: reference, Revision: i.revision.Key, Secrets: i.secrets, Checked: i.checked,
	})
	return digest, named(err)
}

// sourceError is an error of the source with the word that a Release says for it.
type sourceError struct{ error }

func (e sourceError) Unwrap() error  { return e.error }
func (e sourceError) Reason() string { return source.ReleaseReason(e.error) }

func named(err error) error {
	if err == nil {
		return nil
	}
	return sourceError{err}
}

// checker is the view of the coordinator that the controllers of sources have.
type checker struct{ coordinator *source.Coordinator }

func (c checker) Check(ctx context.Context, object v1alpha1.Source) (string, error) {
	revision, err := c.coordinator.Check(ctx, object)
	return revision.Display, err
}

// sourceLists are what the cache reads sources from.
func sourceLists(storage apiserver.Storage) map[string]clientcache.ListerWatcher {
	return map[string]clientcache.ListerWatcher{
		v1alpha1.KindGitRepository: storage.GitRepositories.ListWatch(),
		v1alpha1.KindHelmRegistry:  storage.HelmRegistries.ListWatch(),
		v1alpha1.KindOCIRegistry:   storage.OCIRegistries.ListWatch(),
	}
}

// sourceStores are where the reporter writes the status of sources.
func sourceStores(storage apiserver.Storage) map[string]report.SourceStore {
	return map[string]report.SourceStore{
		v1alpha1.KindGitRepository: report.SourceStatus(storage.GitRepositories),
		v1alpha1.KindHelmRegistry:  report.SourceStatus(storage.HelmRegistries),
		v1alpha1.KindOCIRegistry:   report.SourceStatus(storage.OCIRegistries),
	}
}
