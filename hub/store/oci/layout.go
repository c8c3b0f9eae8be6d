// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/content/oci"

	"kumodo.io/convoy/hub/store"
)

// Exported says what an export has written.
type Exported struct {
	// Renders written, and their Bytes.
	Renders int
	Bytes   int64
}

// Export writes the objects layers of a backend as an OCI layout into a folder, each
// as an artifact under the tag that it would have in a registry. Sealed layers, which
// only a hub can read, stay where they are. A blob that is torn is left out, and the
// error names it.
func Export(ctx context.Context, from store.Backend, dir string) (done Exported, err error) {
	layout, err := oci.NewWithContext(ctx, dir)
	if err != nil {
		return done, fmt.Errorf("layout %s: %w", dir, err)
	}
	layout.AutoSaveIndex = false
	if err := pushEmpty(ctx, layout); err != nil {
		return done, fmt.Errorf("layout %s: %w", dir, err)
	}
	var torn error
	err = from.List(ctx, folderPlain, func(name string, stored time.Time) error {
		size, err := exportOne(ctx, from, layout, name, stored)
		switch {
		case errors.Is(err, store.ErrNotFound): // collected meanwhile
		case errors.Is(err, store.ErrCorrupt):
			torn = errors.Join(torn, err)
		case err != nil:
			return err
		default:
			done.Renders++
			done.Bytes += size
		}
		return nil
	})
	if err := errors.Join(err, layout.SaveIndex()); err != nil {
		return done, fmt.Errorf("layout %s: %w", dir, err)
	}
	return done, torn
}

func exportOne(ctx context.Context, from store.Backend, layout *oci.Store, name string, stored time.Time) (size int64, err error) {
	tag, folder, digits, err := tagOf(name)
	if err != nil {
		return 0, err
	}
	plain := store.NewPlain(from)
	blob, size, err := plain.Open(ctx, "sha256:"+digits)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, blob.Close()) }()
	layer := layerOf(folder, digest.Digest("sha256:"+digits), size)
	if err := already(layout.Push(ctx, layer, blob)); err != nil {
		return 0, fmt.Errorf("%s: %w", tag, err)
	}
	descriptor, text, err := compose(layer, stored, false)
	if err != nil {
		return 0, err
	}
	if err := already(layout.Push(ctx, descriptor, bytes.NewReader(text))); err != nil {
		return 0, fmt.Errorf("%s: %w", tag, err)
	}
	return size, layout.Tag(ctx, descriptor, tag)
}
