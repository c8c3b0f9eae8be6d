// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"time"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/controller/release"
	"kumodo.io/convoy/hub/source"
)

// sources are the Release controller's view of the coordinator.
type sources struct{ coordinator *source.Coordinator }

func (s sources) Resolve(ctx context.Context, repository *v1alpha1.GitRepository, ref string, maxAge time.Duration) (release.Revision, error) {
	revision, err := s.coordinator.Resolve(ctx, source.Want{Object: repository, Revision: ref}, maxAge)
	return release.Revision{Display: revision.Display, Commit: revision.Key}, named(err)
}

func (s sources) Snapshot(ctx context.Context, repository *v1alpha1.GitRepository, revision release.Revision) (release.Snapshot, error) {
	content, err := s.coordinator.Snapshot(ctx, source.Want{Object: repository}, source.Revision{Display: revision.Display, Key: revision.Commit})
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

// checker is the GitRepository controller's view of the coordinator.
type checker struct{ coordinator *source.Coordinator }

func (c checker) Check(ctx context.Context, repository *v1alpha1.GitRepository) (string, error) {
	revision, err := c.coordinator.Check(ctx, repository)
	return revision.Display, err
}
