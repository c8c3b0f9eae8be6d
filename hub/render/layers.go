// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"
	"io"
	"sync"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/pkg/manifest"
)

// layers seals a worker's stream and stores the two layers while it comes.
type layers struct {
	in      *io.PipeWriter
	left    int64
	done    chan struct{}
	summary manifest.Summary
	err     error
	objects *put
	sealed  *put
}

func newLayers(ctx context.Context, r *Renderer, salt []byte) *layers {
	out, in := io.Pipe()
	l := &layers{in: in, left: maxStreamBytes, done: make(chan struct{}), objects: newPut(ctx, r.objects), sealed: newPut(ctx, r.sealed)}
	go func() { // finish waits for it
		defer close(l.done)
		l.summary, l.err = manifest.Seal(out, l.objects, l.sealed, r.macKey, salt)
		out.CloseWithError(l.err) // ends a writer that would go on
	}()
	return l
}

func (l *layers) write(p []byte) error {
	if l.left -= int64(len(p)); l.left < 0 {
		return errStream
	}
	_, err := l.in.Write(p)
	return err
}

// abandon ends both layers and keeps nothing.
func (l *layers) abandon() {
	// The error that it gives is the one that it is given.
	_, _ = l.finish(errGivenUp)
}

// finish ends both layers: stored if all went well, else gone.
func (l *layers) finish(err error) (Result, error) {
	l.in.CloseWithError(err) // nil is the end of the stream
	<-l.done
	if err == nil {
		err = l.err
	}
	objects, objectsErr := l.objects.finish(err)
	sealed, sealedErr := l.sealed.finish(errors.Join(err, objectsErr))
	switch {
	case objectsErr != nil:
		return Result{}, storeFailed(objectsErr)
	case sealedErr != nil:
		return Result{}, storeFailed(sealedErr)
	case err != nil:
		return Result{}, failed(v1alpha1.ReasonRenderFailed, err)
	}
	return Result{Objects: *objects, Sealed: sealed, Count: l.summary.Count}, nil
}

// put stores what is written to it. Nothing written is nothing stored.
type put struct {
	ctx   context.Context
	store store.Store
	begun bool
	in    *io.PipeWriter
	group sync.WaitGroup
	blob  store.Descriptor
	err   error
}

func newPut(ctx context.Context, s store.Store) *put { return &put{ctx: ctx, store: s} }

// errGivenUp ends a blob that is not wanted any more.
var errGivenUp = errors.New("given up")

func (p *put) Write(data []byte) (int, error) {
	if !p.begun {
		p.begun = true
		var out *io.PipeReader
		out, p.in = io.Pipe()
		p.group.Go(func() {
			p.blob, p.err = p.store.Put(p.ctx, out)
			out.CloseWithError(p.err) // ends a writer that would go on
		})
	}
	return p.in.Write(data)
}

// finish gives the blob, or nil if there is none. With an error nothing is kept,
// and an error of the store itself is given back.
func (p *put) finish(err error) (*store.Descriptor, error) {
	if !p.begun {
		return nil, nil
	}
	if err != nil {
		p.in.CloseWithError(errGivenUp)
	} else {
		err = p.in.Close()
	}
	p.group.Wait()
	if p.err != nil && !errors.Is(p.err, errGivenUp) {
		return nil, p.err
	}
	if err != nil {
		return nil, nil
	}
	return &p.blob, nil
}
