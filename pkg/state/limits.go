// SPDX-License-Identifier: Apache-2.0

package state

import "time"

// Limits of the state in Secrets.
const (
	// chunkSize of compressed bytes in one Secret; as base64 it is 700 KB, well
	// below the 1 MiB that a Secret may hold.
	chunkSize = 512 << 10
	// inlineSize: a record above it keeps its inventory in chunks of its own.
	inlineSize = 512 << 10
	// maxRecord is the largest record read back, uncompressed.
	maxRecord = 64 << 20
	// maxLayer is the largest layer that is kept, uncompressed.
	maxLayer = 256 << 20
	// pageSize of lists.
	pageSize = 20
	// maxAnswer is the largest answer that is read: a page of Secrets.
	maxAnswer = 32 << 20
	// maxErrorAnswer is how much of an error is read.
	maxErrorAnswer = 64 << 10
	// callTimeout is the deadline of one request.
	callTimeout = 30 * time.Second
	// maxPuts is how many layers are written at the same time.
	maxPuts = 4
	// cacheSize of compressed layers that are kept in memory, and the largest one
	// that is: a small render is read three times while it is rolled out.
	cacheSize     = 2 << 20
	cacheableSize = 128 << 10
	// window of the compression. Small, since it is held for each open layer.
	window = 256 << 10
	// maxThrottled is how often a request is repeated when the server says 429.
	maxThrottled = 5
)
