// SPDX-License-Identifier: Apache-2.0

package backup

import "time"

const (
	// pageBytes is about how much data one answer carries. A restore request has to
	// stay below the 3 MiB that an API server reads.
	pageBytes = 1 << 20
	// pagePieces bounds the pieces of an answer.
	pagePieces = 1000
	// keysAtOnce is how many keys are asked of etcd at a time.
	keysAtOnce = 200
	// maxCursor is the longest cursor that is read.
	maxCursor = 2 << 10
	// maxPieces bounds the pieces of a restore request.
	maxPieces = 2 * pagePieces
	// maxName bounds the name of a key or blob.
	maxName = 1 << 10
	// etcdTimeout ends one request to etcd.
	etcdTimeout = 10 * time.Second
	// maxPending is how many blobs may be restored in parts at a time.
	maxPending = 4
)
