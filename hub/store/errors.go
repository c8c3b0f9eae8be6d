// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
)

// Sentinels that every store and backend returns, wrapped.
var (
	// ErrNotFound: there is no such blob.
	ErrNotFound = errors.New("no such blob in the render store")
	// ErrLost: the blob is not in the store any more, and nobody who can be reached
	// holds it. It is an ErrNotFound.
	ErrLost = fmt.Errorf("%w, and no connected agent holds it", ErrNotFound)
	// ErrCorrupt: the blob's bytes are not those of its digest.
	ErrCorrupt = errors.New("a blob of the render store is corrupt")
	// ErrTooLarge: the blob has more than MaxBlobBytes.
	ErrTooLarge = fmt.Errorf("a blob has more than %d bytes", MaxBlobBytes)
	// ErrDigest: what should be a digest is none.
	ErrDigest = errors.New("not a digest of the form sha256:<64 hexadecimal digits>")
	// ErrKeyUnknown: a sealed blob was encrypted with a key that is not at hand.
	ErrKeyUnknown = errors.New("a blob is sealed with a key that is not known")
)
