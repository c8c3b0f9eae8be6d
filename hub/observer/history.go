// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
)

// history says what was applied, and what of it is still there.
func (s *Server) history(ctx context.Context, r *request) (any, error) {
	release, leave, err := s.question(ctx, r)
	if err != nil {
		return nil, err
	}
	defer leave()
	out := &v1alpha1.ReleaseHistory{TypeMeta: kindOf("ReleaseHistory"), ObjectMeta: metaOf(release)}
	for i := range release.Status.History {
		entry := &release.Status.History[i]
		made := v1alpha1.HistoryDetail{
			HistoryEntry: *entry.DeepCopy(), Current: entry.RenderRef == release.Status.RenderRef, Applied: entry.RenderRef == release.Status.AppliedRef,
		}
		count, err := s.count(ctx, entry.RenderRef)
		switch {
		case err == nil:
			made.Stored, made.Count = true, int32(count) // at most 10,000
		case !errors.Is(err, ErrNoRender):
			return nil, err
		}
		out.Entries = append(out.Entries, made)
	}
	return out, nil
}

// count of the objects of a render, as its header says.
func (s *Server) count(ctx context.Context, digest string) (n int, err error) {
	blob, err := s.Renders.Open(ctx, digest)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, blob.Close()) }()
	reader, err := manifest.NewReader(blob, nil)
	if err != nil {
		return 0, fmt.Errorf("read render %s: %w", digest, err)
	}
	return reader.Header().Count, nil
}

// lines calls each for the objects of a render. An Entry is valid until each returns.
func (s *Server) lines(ctx context.Context, digest string, each func(*manifest.Entry) error) (err error) {
	blob, err := s.Renders.Open(ctx, digest)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, blob.Close()) }()
	reader, err := manifest.NewReader(blob, nil)
	if err != nil {
		return fmt.Errorf("read render %s: %w", digest, err)
	}
	for ctx.Err() == nil {
		entry, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read render %s: %w", digest, err)
		}
		if err := each(entry); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}
