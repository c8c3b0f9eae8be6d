// SPDX-License-Identifier: Apache-2.0

package git

import "time"

// Limits of a fetch. What is beyond them is refused, and the error names the
// limit and, where there is one, the file.
const (
	// MaxTransferBytes that one fetch may bring.
	MaxTransferBytes = 256 << 20
	// MaxFileBytes of one file of a snapshot.
	MaxFileBytes = 32 << 20
	// MaxSnapshotBytes of all files of a snapshot.
	MaxSnapshotBytes = 128 << 20
	// MaxFiles of a snapshot, symbolic links included.
	MaxFiles = 10_000

	// maxAdvertisementBytes is the size of a server's list of refs.
	maxAdvertisementBytes = 32 << 20
	// maxObjects of one pack.
	maxObjects = 1 << 20
	// maxTreeEntries looked at for one snapshot, so that trees that hold each other
	// many times over come to an end.
	maxTreeEntries = 100_000
	// maxTreeBytes is the size of one tree or commit object.
	maxTreeBytes = 8 << 20
	// maxPathBytes and maxPathDepth of a file's path.
	maxPathBytes = 4096
	maxPathDepth = 64
	// maxLinkBytes of a symbolic link's target.
	maxLinkBytes = 4096
	// maxInflatedBytes of one oversized object: beyond it the file is not even named.
	maxInflatedBytes = 4 << 30
	// deltaCacheBytes keeps bases of deltas while a pack is indexed.
	deltaCacheBytes = 64 << 20
	// maxDeltaDepth is the length of a chain of deltas.
	maxDeltaDepth = 4095

	// maxRedirects that a request follows.
	maxRedirects = 5
	// maxErrorBytes of what a server says is repeated in an error.
	maxErrorBytes = 200
	// maxWants of a fetch that has to ask for all branches and tags.
	maxWants = 2000

	handshakeTimeout = 15 * time.Second
)
