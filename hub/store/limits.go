// SPDX-License-Identifier: Apache-2.0

package store

const (
	// MaxBlobBytes is the size of one layer of a render.
	MaxBlobBytes = 128 << 20
	// MaxStoredBytes is the size of one as it lies in a backend, sealed.
	MaxStoredBytes = MaxBlobBytes + MaxBlobBytes/chunkBytes*64 + maxHeadBytes

	// chunkBytes is how much of a sealed blob is encrypted in one piece.
	chunkBytes = 64 << 10
	// maxHeadBytes bounds the head of a sealed blob.
	maxHeadBytes = 4 << 10
)
