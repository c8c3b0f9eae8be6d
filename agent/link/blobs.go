// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
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
	b.stall = time.AfterFunc(tunnel.StallTimeout, b.cancel)
	resp, err := s.client.Do(r)
	if err != nil {
		return nil, err // says what failed
	}
	b.body = resp.Body
	if resp.StatusCode != http.StatusOK {
		return nil, tunnel.ReadProblem(resp) // typed
	}
	b.r = io.Reader(resp.Body)
	switch encoding := resp.Header.Get("Content-Encoding"); encoding {
	case "":
	case "zstd":
		b.packed, err = zstd.NewReader(resp.Body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(decoderMemory),
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
	once   sync.Once
	err    error
}

func (b *blob) Read(p []byte) (int, error) {
	b.stall.Reset(tunnel.StallTimeout)
	n, err := b.r.Read(p)
	b.left -= int64(n)
	b.link.metrics.blobBytes.Add(float64(n))
	switch {
	case b.left < 0:
		return 0, fmt.Errorf("layer is longer than ordered: %w", tunnel.ErrTooLong)
	case errors.Is(err, io.EOF) && b.left > 0:
		return n, fmt.Errorf("layer ends %d bytes early: %w", b.left, io.ErrUnexpectedEOF)
	case err != nil && !errors.Is(err, io.EOF):
		return n, fmt.Errorf("read layer: %w", err)
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
