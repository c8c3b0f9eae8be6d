// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"kumodo.io/convoy/pkg/tunnel"
)

const decoderMemory = 32 << 20

// Open starts the download of a layer; sealed and uid are for the caller's own
// records, since the hub knows both from the order. It waits for a session for
// up to BlobWait. What is read is bounded by the layer's size; that it is what
// the digest says is for the reader to verify.
func (l *Link) Open(ctx context.Context, layer tunnel.Layer, _ bool, _ string) (io.ReadCloser, error) {
	r, err := l.open(ctx, layer)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", layer.Digest, err)
	}
	return r, nil
}

func (l *Link) open(ctx context.Context, layer tunnel.Layer) (_ io.ReadCloser, err error) {
	if !tunnel.ValidDigest(layer.Digest) || layer.Size <= 0 || layer.Size > tunnel.MaxBlob {
		return nil, fmt.Errorf("%w: layer of %d bytes", tunnel.ErrTooLong, layer.Size)
	}
	select {
	case l.fetches <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err() // said by the caller
	}
	b := &blob{link: l, left: layer.Size}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	s, err := l.waitSession(ctx, BlobWait)
	if err != nil {
		return nil, err
	}
	ctx, b.cancel = context.WithCancel(ctx)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://convoy/v1/blobs/"+layer.Digest, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	r.Header.Set("Accept-Encoding", "zstd")
	// A hub that stops in the middle must not hold one of the few fetches.
	b.stall = time.AfterFunc(tunnel.StallTimeout, b.giveUp)
	resp, err := s.client.Do(r)
	if err != nil {
		return nil, b.why(err)
	}
	b.stall.Stop()
	b.body = resp.Body
	arrives := &arriving{from: resp.Body, stall: b.stall}
	resp.Body = io.NopCloser(arrives) // b closes it
	if resp.StatusCode != http.StatusOK {
		return nil, tunnel.ReadProblem(resp) // typed
	}
	b.r = arrives
	switch encoding := resp.Header.Get("Content-Encoding"); encoding {
	case "":
	case "zstd":
		b.packed, err = zstd.NewReader(arrives, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(decoderMemory),
			zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
		b.r = b.packed
	default:
		return nil, fmt.Errorf("unpack: encoding %q was not asked for", encoding)
	}
	return b, nil
}

// blob is one download. Reading past the size that was ordered is an error, and
// so is an end before it.
type blob struct {
	link   *Link
	r      io.Reader
	left   int64
	body   io.Closer
	packed *zstd.Decoder
	cancel context.CancelFunc
	stall  *time.Timer
	still  atomic.Bool // it was given up since nothing came
	once   sync.Once
	err    error
}

// arriving is a body as it comes in: each step of it may take StallTimeout, however few
// bytes it brings. What the reader does in between is not counted.
type arriving struct {
	from  io.Reader
	stall *time.Timer
}

func (a *arriving) Read(p []byte) (int, error) {
	a.stall.Reset(tunnel.StallTimeout)
	defer a.stall.Stop()
	return a.from.Read(p) //nolint:wrapcheck // read by the blob
}

func (b *blob) giveUp() {
	b.still.Store(true)
	b.cancel()
}

// why gives the reason for which a download was given up, if it was.
func (b *blob) why(err error) error {
	if b.still.Load() {
		return fmt.Errorf("%w for %s", errStalled, tunnel.StallTimeout)
	}
	return err
}

func (b *blob) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.left -= int64(n)
	b.link.metrics.blobBytes.Add(float64(n))
	switch {
	case b.left < 0:
		return 0, fmt.Errorf("layer is longer than ordered: %w", tunnel.ErrTooLong)
	case errors.Is(err, io.EOF) && b.left > 0:
		return n, fmt.Errorf("layer ends %d bytes early: %w", b.left, io.ErrUnexpectedEOF)
	case err != nil && !errors.Is(err, io.EOF):
		return n, fmt.Errorf("read layer: %w", b.why(err))
	}
	return n, err // io.EOF
}

// Close ends the download and lets the next one start.
func (b *blob) Close() error {
	b.once.Do(func() {
		if b.stall != nil {
			b.stall.Stop()
		}
		if b.cancel != nil {
			b.cancel()
		}
		if b.packed != nil {
			b.packed.Close()
		}
		if b.body != nil {
			b.err = b.body.Close()
		}
		if b.left == 0 {
			b.link.metrics.blobs.WithLabelValues("fetched").Inc()
		} else {
			b.link.metrics.blobs.WithLabelValues("failed").Inc()
		}
		<-b.link.fetches
	})
	return b.err
}
