// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"regexp"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// digestForm is how a digest is written.
var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// stage brings both layers of a render into State. A layer whose bytes are not what
// the order says is never kept.
func (r *release) stage(ctx context.Context, render *Render) error {
	r.runner.hold(render)
	defer r.runner.unhold(render)
	if err := r.stageLayer(ctx, render.Objects, false, r.uid); err != nil {
		return err
	}
	if render.Sealed == nil {
		return nil
	}
	return r.stageLayer(ctx, *render.Sealed, true, r.uid)
}

// stageLayer fetches a layer that an order of the Release with that UID names, unless it
// is stored.
func (r *release) stageLayer(ctx context.Context, layer tunnel.Layer, sealed bool, uid string) (err error) {
	stored, err := r.runner.state.OpenRender(ctx, layer.Digest)
	if err == nil {
		return stored.Close()
	}
	if !errors.Is(err, ErrNotStored) {
		return fmt.Errorf("look for layer %s: %w", layer.Digest, err)
	}
	// Reading from far away must not hold one of the few places.
	r.leave()
	defer func() { r.runner.slots <- struct{}{} }()
	from, err := r.runner.blobs.Open(ctx, layer, sealed, uid)
	if err != nil {
		return fmt.Errorf("fetch layer %s: %w", layer.Digest, err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if err := r.runner.state.PutRender(ctx, layer.Digest, newExact(from, layer)); err != nil {
		return fmt.Errorf("stage layer %s: %w", layer.Digest, err)
	}
	return nil
}

// exact reads a stream that must have one digest and size. It gives an error in
// place of the end when it has not.
type exact struct {
	from io.Reader
	want tunnel.Layer
	sum  hash.Hash
	read int64
}

func newExact(from io.Reader, want tunnel.Layer) *exact {
	return &exact{from: from, want: want, sum: sha256.New()}
}

func (e *exact) Read(p []byte) (int, error) {
	n, err := e.from.Read(p)
	e.sum.Write(p[:n])
	e.read += int64(n)
	if e.read > e.want.Size {
		return 0, e.refuse(fmt.Errorf("layer %s is longer than the %d bytes ordered", e.want.Digest, e.want.Size))
	}
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if e.read != e.want.Size {
		return 0, e.refuse(fmt.Errorf("layer %s has %d bytes, ordered are %d", e.want.Digest, e.read, e.want.Size))
	}
	if got := "sha256:" + hex.EncodeToString(e.sum.Sum(nil)); got != e.want.Digest {
		return 0, e.refuse(fmt.Errorf("the bytes received for layer %s have digest %s", e.want.Digest, got))
	}
	return n, io.EOF
}

func (e *exact) refuse(err error) error {
	return &renderError{reason: v1alpha1.ReasonRenderRefused, err: err}
}
