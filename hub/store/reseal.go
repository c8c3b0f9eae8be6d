// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Reseal seals all blobs again that an old key sealed, one after the other, and
// tells how many. A blob that cannot be read is left as it is, and the rest goes on:
// the error names each.
func (s *Sealer) Reseal(ctx context.Context) (done int, err error) {
	old, err := s.old(ctx)
	if err != nil {
		return 0, err
	}
	var failed error
	for _, digest := range old {
		if err := ctx.Err(); err != nil {
			return done, errors.Join(failed, err)
		}
		if err := s.reseal(ctx, digest); err != nil {
			failed = errors.Join(failed, fmt.Errorf("seal %s again: %w", digest, err))
			continue
		}
		done++
	}
	return done, failed
}

// SealedWith counts the blobs of each key by its ID.
func (s *Sealer) SealedWith(ctx context.Context) (map[string]int64, error) {
	counts := map[string]int64{}
	err := s.List(ctx, func(info Info) error {
		id, err := s.keyOf(ctx, info.Digest)
		switch {
		case errors.Is(err, ErrNotFound), errors.Is(err, ErrCorrupt):
			return nil // collected meanwhile, or of no use to anybody
		case err != nil:
			return err
		}
		counts[id]++
		return nil
	})
	return counts, err
}

func (s *Sealer) old(ctx context.Context) ([]string, error) {
	var old []string
	err := s.List(ctx, func(info Info) error {
		id, err := s.keyOf(ctx, info.Digest)
		switch {
		case errors.Is(err, ErrNotFound), errors.Is(err, ErrCorrupt):
			return nil // collected meanwhile, or for the recovery to mend
		case err != nil:
			return err
		}
		if id != s.keys.Current.ID {
			old = append(old, info.Digest)
		}
		return nil
	})
	return old, err
}

// keyOf reads which key sealed a blob.
func (s *Sealer) keyOf(ctx context.Context, digest string) (_ string, err error) {
	digits, err := CheckDigest(digest)
	if err != nil {
		return "", err
	}
	blob, _, err := s.backend.Open(ctx, folderSealed+"/"+digits)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, blob.Close()) }()
	line, err := readHead(blob)
	if err != nil {
		return "", err
	}
	var head sealedHead
	if err := json.Unmarshal(line, &head); err != nil {
		return "", fmt.Errorf("%w: its head: %w", ErrCorrupt, err)
	}
	return head.KeyID, nil
}

func (s *Sealer) reseal(ctx context.Context, digest string) (err error) {
	blob, _, err := s.Open(ctx, digest)
	if errors.Is(err, ErrNotFound) {
		return nil // collected meanwhile
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, blob.Close()) }()
	_, err = s.Put(ctx, blob)
	return err
}
