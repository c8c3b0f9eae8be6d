// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientcache "k8s.io/client-go/tools/cache"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver"
	"kumodo.io/convoy/hub/controller/release"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/hub/source"
)

// sources are the Release controller's view of the coordinator.
type sources struct{ coordinator *source.Coordinator }

// errRevision: a revision that these sources did not give.
var errRevision = errors.New("the revision is not from our sources")

func (s sources) Resolve(ctx context.Context, object v1alpha1.Source, ref string, maxAge time.Duration) (release.Revision, error) {
	revision, err := s.coordinator.Resolve(ctx, source.Want{Object: object, Revision: ref}, maxAge)
	return release.Revision{Display: revision.Display, Commit: revision.Key, Detail: revision}, named(err)
}

func (s sources) Snapshot(ctx context.Context, object v1alpha1.Source, revision release.Revision) (release.Snapshot, error) {
	ours, ok := revision.Detail.(source.Revision)
	if !ok {
		return nil, fmt.Errorf("%w: %s", errRevision, revision.Display)
	}
	content, err := s.coordinator.Snapshot(ctx, source.Want{Object: object}, ours)
	if err != nil {
		return nil, named(err)
	}
	return snapshot{content}, nil
}

// snapshot names the reasons of its errors.
type snapshot struct{ *source.Snapshot }

func (s snapshot) PathDigest(path string) (string, error) {
	digest, err := s.Snapshot.PathDigest(path)
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
