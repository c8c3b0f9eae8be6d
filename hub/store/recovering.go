// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"
)

// Mended is a Store that can put a torn blob aside.
type Mended interface {
	Store
	// SetAside takes a torn blob out and says where it lies now.
	SetAside(ctx context.Context, digest string) (where string, err error)
}

// Finder finds a layer that the store has lost, where it was delivered to. It gives
// what each holder sends to take, until take is satisfied: a holder may be hostile.
// ErrNotFound: nobody who can be reached holds the layer.
type Finder interface {
	Find(ctx context.Context, digest string, sealed bool, take func(io.Reader) error) error
}

// Recovering is a Store that has lost blobs fetched back: those that are not there,
// those that are torn, which are put aside first, and those whose sealing key is
// lost. Content decides, so that it is safe: a blob is what its digest says or
// it is none.
type Recovering struct {
	// Static.
	store   Mended
	sealed  bool
	layer   string
	finder  Finder
	clock   clock.PassiveClock
	metrics *Metrics
	flights singleflight.Group
	slots   chan struct{}

	mu sync.Mutex
	// whole are blobs that were read to their end by this process; guarded by mu.
	whole map[string]struct{}
	// missed tells when a blob was last looked for in vain; guarded by mu.
	missed map[string]time.Time
}

var _ Store = (*Recovering)(nil)

// Recover makes a Recovering on a store of one layer; sealed says which.
func (m *Metrics) Recover(store Mended, sealed bool, finder Finder) *Recovering {
	layer := "objects"
	if sealed {
		layer = "sealed"
	}
	return &Recovering{
		store: store, sealed: sealed, layer: layer, finder: finder, clock: clock.RealClock{}, metrics: m,
		slots: make(chan struct{}, maxRecoveries), whole: map[string]struct{}{}, missed: map[string]time.Time{},
	}
}

// Put implements Store.
func (r *Recovering) Put(ctx context.Context, content io.Reader) (Descriptor, error) {
	return r.store.Put(ctx, content)
}

// Delete implements Store.
func (r *Recovering) Delete(ctx context.Context, digest string) error {
	return r.store.Delete(ctx, digest)
}

// Open implements Store. A blob is read to its end once in the life of the process
// before it is given out, so that whoever asks gets the whole and not the beginning
// of a torn one.
func (r *Recovering) Open(ctx context.Context, digest string) (io.ReadCloser, int64, error) {
	err := r.check(ctx, digest)
	switch {
	case errors.Is(err, ErrCorrupt):
		if err := r.setAside(ctx, digest, err); err != nil {
			return nil, 0, err
		}
		err = r.recover(ctx, digest)
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrKeyUnknown):
		err = r.recover(ctx, digest)
	}
	if err != nil {
		return nil, 0, err
	}
	blob, size, err := r.store.Open(ctx, digest)
	if err != nil {
		return nil, 0, err
	}
	return &watchedReader{ReadCloser: blob, owner: r, ctx: ctx, digest: digest}, size, nil
}

// check reads a blob to its end, the first time.
func (r *Recovering) check(ctx context.Context, digest string) error {
	r.mu.Lock()
	_, whole := r.whole[digest]
	r.mu.Unlock()
	blob, _, err := r.store.Open(ctx, digest)
	if err != nil {
		return err
	}
	if whole {
		return blob.Close()
	}
	_, err = io.Copy(io.Discard, &contextReader{ctx: ctx, r: blob})
	if err := errors.Join(err, blob.Close()); err != nil {
		return fmt.Errorf("read %s: %w", digest, err)
	}
	r.remember(digest)
	return nil
}

func (r *Recovering) remember(digest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.whole) >= maxRemembered {
		clear(r.whole)
	}
	r.whole[digest] = struct{}{}
	delete(r.missed, digest)
}

func (r *Recovering) setAside(ctx context.Context, digest string, cause error) error {
	r.mu.Lock()
	delete(r.whole, digest)
	r.mu.Unlock()
	where, err := r.store.SetAside(ctx, digest)
	if errors.Is(err, ErrNotFound) {
		return nil // somebody else did
	}
	if err != nil {
		return fmt.Errorf("put a torn blob aside: %w", errors.Join(err, cause))
	}
	r.metrics.torn.WithLabelValues(r.layer).Inc()
	logr.FromContextOrDiscard(ctx).Error(cause, "A torn file of the render store was put aside", "digest", digest, "layer", r.layer, "where", where)
	return nil
}

// recover has a blob fetched back, once for all who ask. It goes on when the first
// who asked gives up: others wait for the same.
func (r *Recovering) recover(ctx context.Context, digest string) error {
	done := r.flights.DoChan(digest, func() (any, error) {
		long, cancel := context.WithTimeout(context.WithoutCancel(ctx), recoveryTimeout)
		defer cancel()
		return nil, r.fetch(long, digest)
	})
	select {
	case result := <-done:
		return result.Err
	case <-ctx.Done():
		return fmt.Errorf("fetch %s back: %w", digest, ctx.Err())
	}
}

func (r *Recovering) fetch(ctx context.Context, digest string) error {
	r.mu.Lock()
	missed, ok := r.missed[digest]
	r.mu.Unlock()
	if ok && r.clock.Since(missed) < recoveryPause {
		return fmt.Errorf("%s: %w", digest, ErrLost)
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return fmt.Errorf("fetch %s back: %w", digest, ctx.Err())
	}
	err := r.fetchOne(ctx, digest)
	log := logr.FromContextOrDiscard(ctx)
	if err != nil {
		r.mu.Lock()
		if len(r.missed) >= maxRemembered {
			clear(r.missed)
		}
		r.missed[digest] = r.clock.Now()
		r.mu.Unlock()
		r.metrics.recovered.WithLabelValues(r.layer, "failed").Inc()
		if !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("fetch %s back: %w", digest, err)
		}
		log.Info("A blob of the render store is lost, and no agent that is connected holds it", "digest", digest, "layer", r.layer)
		return fmt.Errorf("%s: %w", digest, ErrLost)
	}
	r.remember(digest)
	r.metrics.recovered.WithLabelValues(r.layer, "done").Inc()
	log.Info("A lost blob of the render store was fetched back", "digest", digest, "layer", r.layer)
	return nil
}

func (r *Recovering) fetchOne(ctx context.Context, digest string) error {
	digits, err := CheckDigest(digest)
	if err != nil {
		return err
	}
	return r.finder.Find(ctx, digest, r.sealed, func(content io.Reader) error {
		// What is not the blob of that digest ends in ErrCorrupt and is not stored.
		_, err := r.store.Put(ctx, &verifier{Reader: content, sum: sha256.New(), digits: digits})
		return err
	})
}

// watchedReader puts a blob aside that turns out to be torn while it is read.
type watchedReader struct {
	io.ReadCloser
	owner  *Recovering
	ctx    context.Context //nolint:containedctx // of the request that the reader was opened for
	digest string
}

func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if errors.Is(err, ErrCorrupt) {
		if aside := w.owner.setAside(context.WithoutCancel(w.ctx), w.digest, err); aside != nil {
			err = errors.Join(err, aside)
		}
	}
	return n, err
}
