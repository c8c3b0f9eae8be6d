// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// codecs compress and expand. Their buffers are the largest thing the agent holds,
// so they are few, small, and used again.
type codecs struct {
	mu       sync.Mutex
	encoders []*zstd.Encoder
	decoders []*zstd.Decoder
}

// maxIdle codecs of each kind are kept.
const maxIdle = 2

func newCodecs() (*codecs, error) {
	c := &codecs{}
	e, err := newEncoder()
	if err != nil {
		return nil, err
	}
	c.encoders = append(c.encoders, e)
	return c, nil
}

func newEncoder() (*zstd.Encoder, error) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(window), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, fmt.Errorf("make an encoder: %w", err)
	}
	return e, nil
}

func (c *codecs) encoder() (*zstd.Encoder, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.encoders); n > 0 {
		e := c.encoders[n-1]
		c.encoders = c.encoders[:n-1]
		return e, nil
	}
	return newEncoder()
}

func (c *codecs) putEncoder(e *zstd.Encoder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.encoders) < maxIdle {
		e.Reset(nil)
		c.encoders = append(c.encoders, e)
	}
}

func (c *codecs) decoder() (*zstd.Decoder, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.decoders); n > 0 {
		d := c.decoders[n-1]
		c.decoders = c.decoders[:n-1]
		return d, nil
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		return nil, fmt.Errorf("make a decoder: %w", err)
	}
	return d, nil
}

func (c *codecs) putDecoder(d *zstd.Decoder) error {
	if err := d.Reset(nil); err != nil {
		d.Close()
		return fmt.Errorf("reset a decoder: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.decoders) < maxIdle {
		c.decoders = append(c.decoders, d)
		return nil
	}
	d.Close()
	return nil
}

// idle lets go of the codecs that nobody uses.
func (c *codecs) idle() {
	c.mu.Lock()
	decoders := c.decoders
	c.encoders, c.decoders = nil, nil
	c.mu.Unlock()
	for _, d := range decoders {
		d.Close()
	}
}

// pack compresses a small thing.
func (c *codecs) pack(plain []byte) []byte {
	var out bytes.Buffer
	if err := c.compress(&out, bytes.NewReader(plain)); err != nil {
		// A bytes.Buffer and a bytes.Reader have no errors to give, and the settings
		// of the encoder were tried when the codecs were made.
		return nil
	}
	return out.Bytes()
}

// compress copies a stream.
func (c *codecs) compress(to io.Writer, from io.Reader) error {
	e, err := c.encoder()
	if err != nil {
		return err
	}
	e.Reset(to)
	_, err = io.Copy(e, from)
	if err = errors.Join(err, e.Close()); err != nil {
		return err
	}
	c.putEncoder(e)
	return nil
}

// expand is the inverse of pack, for at most limit bytes.
func (c *codecs) expand(packed []byte, limit int64) ([]byte, error) {
	r, err := c.open(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, limit))
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("expand: %w", err)
	}
	return plain, nil
}

// open reads an expanded stream; Close gives the decoder back.
func (c *codecs) open(from io.Reader) (io.ReadCloser, error) {
	d, err := c.decoder()
	if err != nil {
		return nil, err
	}
	if err := d.Reset(from); err != nil {
		d.Close()
		return nil, fmt.Errorf("begin to expand: %w", err)
	}
	return &expanding{codecs: c, decoder: d}, nil
}

type expanding struct {
	codecs  *codecs
	decoder *zstd.Decoder
}

func (e *expanding) Read(p []byte) (int, error) {
	return e.decoder.Read(p) //nolint:wrapcheck // io.EOF must stay what it is
}

// Close may be called once more than needed.
func (e *expanding) Close() error {
	if e.decoder == nil {
		return nil
	}
	d := e.decoder
	e.decoder = nil
	return e.codecs.putDecoder(d)
}
