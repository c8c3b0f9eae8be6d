// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/pkg/engine"
)

// chunkName is the digest, shortened to what tells layers apart, and the number.
func chunkName(digest string, n int) string {
	return "convoy-render-" + strings.TrimPrefix(digest, "sha256:")[:40] + "-" + strconv.Itoa(n)
}

// readIndex lists what is there, once. Chunks of a layer whose last one is missing
// are left over from a writer that was killed.
func (s *Secrets) readIndex(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index != nil {
		return nil
	}
	index, partial := map[string]int{}, map[string][]string{}
	names := map[string][]string{}
	err := s.client.list(ctx, labelState+"="+stateRender, false, func(in *secret) error {
		digest := in.Metadata.Annotations[annotationDigest]
		if !validDigest(digest) {
			return nil // not made here
		}
		names[digest] = append(names[digest], in.Metadata.Name)
		if n, err := strconv.Atoi(in.Metadata.Annotations[annotationChunks]); err == nil && n > 0 {
			index[digest] = n
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list layers: %w", err)
	}
	for digest, have := range names {
		if n, whole := index[digest]; !whole || len(have) != n {
			delete(index, digest)
			partial[digest] = have
		}
	}
	s.index, s.partial = index, partial
	return nil
}

func validDigest(digest string) bool {
	hex, ok := strings.CutPrefix(digest, "sha256:")
	return ok && len(hex) == 64
}

// PutRender implements engine.Renders.
func (s *Secrets) PutRender(ctx context.Context, digest string, from io.Reader) error {
	if !validDigest(digest) {
		return fmt.Errorf("layer %q: %w", digest, engine.ErrNotStored)
	}
	if err := s.readIndex(ctx); err != nil {
		return err
	}
	leftover, stored, err := s.beginLayer(ctx, digest)
	if err != nil || stored {
		return err
	}
	defer s.endLayer(digest)
	select {
	case s.puts <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("store layer %s: %w", digest, context.Cause(ctx))
	}
	defer func() { <-s.puts }()
	for _, name := range leftover {
		if err := s.client.remove(ctx, name); err != nil {
			return fmt.Errorf("remove what is left of layer %s: %w", digest, err)
		}
	}
	w := &chunkWriter{ctx: ctx, state: s, digest: digest}
	err = s.codecs.compress(w, io.LimitReader(from, maxLayer+1))
	if err == nil {
		err = w.close()
	}
	s.mu.Lock()
	delete(s.partial, digest)
	if err == nil {
		s.index[digest] = w.count
	} else {
		s.partial[digest] = w.names()
	}
	s.mu.Unlock()
	if err != nil {
		return errors.Join(fmt.Errorf("store layer %s: %w", digest, err), s.dropLayer(context.WithoutCancel(ctx), digest))
	}
	if w.count == 1 && len(w.only) <= cacheableSize {
		s.cache.put(digest, w.only)
	}
	return nil
}

// beginLayer makes the caller the one that stores a layer, after anybody who does so
// already; and says whether it is stored by then, and what was left of it before.
func (s *Secrets) beginLayer(ctx context.Context, digest string) (leftover []string, stored bool, err error) {
	for {
		s.mu.Lock()
		_, stored = s.index[digest]
		busy := s.storing[digest]
		if !stored && busy == nil {
			s.storing[digest] = make(chan struct{})
			leftover = s.partial[digest]
		}
		s.mu.Unlock()
		if stored || busy == nil {
			return leftover, stored, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, false, fmt.Errorf("store layer %s: %w", digest, context.Cause(ctx))
		}
	}
}

func (s *Secrets) endLayer(digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.storing[digest])
	delete(s.storing, digest)
}

// chunkWriter cuts compressed bytes into Secrets. One chunk is held back, since the
// last one says how many there are.
type chunkWriter struct {
	ctx     context.Context // of the one call that it serves
	state   *Secrets
	digest  string
	pending bytes.Buffer
	only    []byte // content of the last chunk
	count   int
}

func (w *chunkWriter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		if w.pending.Len() == chunkSize {
			if err := w.flush(false); err != nil {
				return written, err
			}
		}
		n := min(chunkSize-w.pending.Len(), len(p))
		w.pending.Write(p[:n])
		p, written = p[n:], written+n
	}
	return written, nil
}

func (w *chunkWriter) close() error { return w.flush(true) }

func (w *chunkWriter) flush(last bool) error {
	immutable := true
	w.only = bytes.Clone(w.pending.Bytes())
	out := &secret{
		Type: typeOpaque, Immutable: &immutable,
		Metadata: secretMeta{
			Name:        chunkName(w.digest, w.count),
			Labels:      map[string]string{labelState: stateRender},
			Annotations: map[string]string{annotationDigest: w.digest},
		},
		Data: map[string][]byte{keyChunk: w.only},
	}
	if last {
		out.Metadata.Annotations[annotationChunks] = strconv.Itoa(w.count + 1)
	}
	err := w.state.client.create(w.ctx, out)
	if apierrors.IsAlreadyExists(err) {
		// Left by somebody that this process does not know of.
		if err = w.state.client.remove(w.ctx, out.Metadata.Name); err == nil {
			err = w.state.client.create(w.ctx, out)
		}
	}
	if err != nil {
		return fmt.Errorf("write chunk %d: %w", w.count, err)
	}
	w.count++
	w.pending.Reset()
	return nil
}

func (w *chunkWriter) names() []string {
	names := make([]string, 0, w.count+1)
	for n := range w.count + 1 { // the one under way may have arrived
		names = append(names, chunkName(w.digest, n))
	}
	return names
}

// OpenRender implements engine.Renders.
func (s *Secrets) OpenRender(ctx context.Context, digest string) (io.ReadCloser, error) {
	if err := s.readIndex(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	count, whole := s.index[digest]
	s.mu.Unlock()
	if !whole {
		return nil, fmt.Errorf("layer %s: %w", digest, engine.ErrNotStored)
	}
	r := &chunkReader{ctx: ctx, state: s, digest: digest, count: count}
	// The first chunk is read now, so that a layer that somebody deleted is told as
	// not stored and fetched again.
	if err := r.load(); err != nil {
		return nil, err
	}
	return s.codecs.open(r)
}

// chunkReader reads the compressed bytes of a layer, one chunk at a time.
type chunkReader struct {
	ctx    context.Context // of the reading that it serves
	state  *Secrets
	digest string
	count  int
	next   int
	chunk  []byte
}

func (r *chunkReader) load() error {
	if r.count == 1 {
		if content, ok := r.state.cache.get(r.digest); ok {
			r.chunk, r.next = content, 1
			return nil
		}
	}
	in, err := r.state.client.get(r.ctx, chunkName(r.digest, r.next))
	if apierrors.IsNotFound(err) || (err == nil && in.Metadata.Annotations[annotationDigest] != r.digest) {
		r.state.mu.Lock()
		if r.state.index[r.digest] == r.count {
			delete(r.state.index, r.digest)
			w := chunkWriter{digest: r.digest, count: r.count}
			r.state.partial[r.digest] = w.names()
		}
		r.state.mu.Unlock()
		return fmt.Errorf("layer %s, chunk %d: %w: %w", r.digest, r.next, engine.ErrNotStored, errTorn)
	}
	if err != nil {
		return fmt.Errorf("read layer %s, chunk %d: %w", r.digest, r.next, err)
	}
	r.chunk = in.Data[keyChunk]
	r.next++
	if r.count == 1 && len(r.chunk) <= cacheableSize {
		r.state.cache.put(r.digest, r.chunk)
	}
	return nil
}

func (r *chunkReader) Read(p []byte) (int, error) {
	for len(r.chunk) == 0 {
		if r.next >= r.count {
			return 0, io.EOF
		}
		if err := r.load(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.chunk)
	r.chunk = r.chunk[n:]
	return n, nil
}

// RetainRenders implements engine.Renders. Inventories that are kept apart stay.
func (s *Secrets) RetainRenders(ctx context.Context, keep func(digest string) bool) error {
	if err := s.readIndex(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	digests := slices.Sorted(maps.Keys(s.index))
	digests = append(digests, slices.Sorted(maps.Keys(s.partial))...)
	s.mu.Unlock()
	var failures []error
	for _, digest := range digests {
		s.mu.Lock()
		mine := false
		for _, inventory := range s.inventories {
			mine = mine || inventory == digest
		}
		s.mu.Unlock()
		if mine || keep(digest) {
			continue
		}
		failures = append(failures, s.dropLayer(ctx, digest))
	}
	return errors.Join(failures...)
}

// dropLayer deletes the chunks of a layer. The last one goes first: without it the
// rest is known to be left over.
func (s *Secrets) dropLayer(ctx context.Context, digest string) error {
	s.cache.drop(digest)
	s.mu.Lock()
	names := s.partial[digest]
	if n, whole := s.index[digest]; whole {
		w := chunkWriter{digest: digest, count: n - 1}
		names = w.names()
	}
	delete(s.index, digest)
	s.partial[digest] = names
	s.mu.Unlock()
	for _, name := range slices.Backward(names) {
		if err := s.client.remove(ctx, name); err != nil {
			return fmt.Errorf("delete layer %s: %w", digest, err)
		}
	}
	s.mu.Lock()
	delete(s.partial, digest)
	s.mu.Unlock()
	return nil
}
