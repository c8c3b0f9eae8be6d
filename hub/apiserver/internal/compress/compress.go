// SPDX-License-Identifier: Apache-2.0

// Package compress keeps objects in etcd as zstd frames of their JSON. It stands
// below the flow, between the API server and etcd.
package compress

import (
	"bytes"
	"context"
	"fmt"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
)

const (
	// maxObject is the largest object, unpacked. It bounds what a broken value in
	// etcd can cost.
	maxObject = 64 << 20
	// concurrency of packing and of unpacking; each keeps buffers of its own.
	concurrency = 4
)

// magic is what a zstd frame begins with; JSON begins with a brace.
var magic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// Transformers packs and unpacks all resources alike.
type Transformers struct {
	transformer *transformer
}

// New makes one.
func New() (*Transformers, error) {
	enc, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.SpeedDefault),
		zstd.WithEncoderConcurrency(concurrency),
		zstd.WithWindowSize(1<<20),
		zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("make zstd encoder: %w", err)
	}
	dec, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(concurrency),
		zstd.WithDecoderMaxMemory(maxObject),
		zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("make zstd decoder: %w", err)
	}
	return &Transformers{transformer: &transformer{enc: enc, dec: dec}}, nil
}

var _ value.ResourceTransformers = &Transformers{}

// TransformerForResource implements value.ResourceTransformers.
func (t *Transformers) TransformerForResource(schema.GroupResource) value.Transformer {
	return t.transformer
}

type transformer struct {
	enc *zstd.Encoder // EncodeAll may be called by many at a time
	dec *zstd.Decoder // DecodeAll may be called by many at a time
}

// TransformFromStorage unpacks. What lies there unpacked is read as it is, and is
// stale, so that the next write of the object packs it.
func (t *transformer) TransformFromStorage(_ context.Context, data []byte, _ value.Context) ([]byte, bool, error) {
	if !bytes.HasPrefix(data, magic) {
		return data, true, nil
	}
	out, err := t.dec.DecodeAll(data, nil)
	if err != nil {
		return nil, false, fmt.Errorf("unpack a stored object: %w", err)
	}
	return out, false, nil
}

// TransformToStorage packs.
func (t *transformer) TransformToStorage(_ context.Context, data []byte, _ value.Context) ([]byte, error) {
	return t.enc.EncodeAll(data, make([]byte, 0, len(data)/2)), nil
}
