// SPDX-License-Identifier: Apache-2.0

// Package memory is a backend of the render store without a disk, for tests and
// benchmarks: the third step of the flow source -> render -> store -> deliver ->
// apply -> observe -> report.
package memory

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"kumodo.io/convoy/hub/store"
)

// Backend keeps blobs in a map. The zero value is ready.
type Backend struct {
	// Clock tells when a blob was stored; nil is the real one.
	Clock clock.PassiveClock

	mu    sync.Mutex
	blobs map[string]blob
}

type blob struct {
	data   []byte
	stored time.Time
}

var _ store.Backend = (*Backend)(nil)

// Create implements store.Backend.
func (b *Backend) Create(context.Context) (store.Pending, error) {
	return &pending{backend: b}, nil
}

// Open implements store.Backend.
func (b *Backend) Open(_ context.Context, name string) (io.ReadCloser, int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, ok := b.blobs[name]
	if !ok {
		return nil, 0, store.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(found.data)), int64(len(found.data)), nil
}

// Delete implements store.Backend.
func (b *Backend) Delete(_ context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.blobs, name)
	return nil
}

// DeleteBefore implements store.Backend.
func (b *Backend) DeleteBefore(_ context.Context, name string, before time.Time) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, ok := b.blobs[name]
	if !ok || !found.stored.Before(before) {
		return false, nil
	}
	delete(b.blobs, name)
	return true, nil
}

// SetAside implements store.Backend.
func (b *Backend) SetAside(_ context.Context, name string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, ok := b.blobs[name]
	if !ok {
		return "", store.ErrNotFound
	}
	delete(b.blobs, name)
	where := "aside/" + strings.ReplaceAll(name, "/", "-")
	b.blobs[where] = found
	return where, nil
}

// List implements store.Backend.
func (b *Backend) List(ctx context.Context, folder string, each func(string, time.Time) error) error {
	b.mu.Lock()
	found := map[string]time.Time{}
	for name, blob := range b.blobs {
		if strings.HasPrefix(name, folder+"/") {
			found[name] = blob.stored
		}
	}
	b.mu.Unlock()
	for name, stored := range found {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := each(name, stored); err != nil {
			return err
		}
	}
	return nil
}

type pending struct {
	bytes.Buffer
	backend *Backend
}

// Commit implements store.Pending.
func (p *pending) Commit(name string) error {
	var now clock.PassiveClock = clock.RealClock{}
	if p.backend.Clock != nil {
		now = p.backend.Clock
	}
	p.backend.mu.Lock()
	defer p.backend.mu.Unlock()
	if p.backend.blobs == nil {
		p.backend.blobs = map[string]blob{}
	}
	p.backend.blobs[name] = blob{data: p.Bytes(), stored: now.Now()}
	return nil
}

// Abort implements store.Pending.
func (p *pending) Abort() error { return nil }
