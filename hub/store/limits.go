// SPDX-License-Identifier: Apache-2.0

package store

import "time"

const (
	// MaxBlobBytes is the size of one layer of a render.
	MaxBlobBytes = 128 << 20
	// MaxStoredBytes is the size of one as it lies in a backend, sealed.
	MaxStoredBytes = MaxBlobBytes + MaxBlobBytes/chunkBytes*64 + maxHeadBytes

	// chunkBytes is how much of a sealed blob is encrypted in one piece.
	chunkBytes = 64 << 10
	// maxHeadBytes bounds the head of a sealed blob.
	maxHeadBytes = 4 << 10

	// maxRecoveries is how many lost blobs are fetched back at once.
	maxRecoveries = 4
	// recoveryTimeout ends one, from the search to the stored blob.
	recoveryTimeout = 5 * time.Minute
	// recoveryPause is how long a blob that nobody had is not looked for again.
	recoveryPause = 5 * time.Second
	// maxRemembered is how many blobs are remembered as read in full, or as not found.
	maxRemembered = 20_000

	// Grace is how long a blob is kept that nothing refers to, since it was last put.
	Grace = 24 * time.Hour
	// sweepAfter is how long after the start nothing is collected: a hub that was
	// restored takes back from its agents what it refers to.
	sweepAfter = 30 * time.Minute
	// sweepPerSecond paces deletions.
	sweepPerSecond = 50
	// maxSwept is how many blobs one sweep takes away from one store.
	maxSwept = 100_000
	// rootsTimeout ends the listing of what is referred to.
	rootsTimeout = time.Minute
)
