// SPDX-License-Identifier: Apache-2.0

package keyset

import "time"

const (
	// caLifetime of the two CAs. They are rotated by hand.
	caLifetime = 10 * 365 * 24 * time.Hour
	// backdate of every certificate, for peers whose clock is behind.
	backdate = time.Hour

	// macKeySize and sealingKeySize in bytes.
	macKeySize     = 32
	sealingKeySize = 32

	// maxOld is how many keys a set accepts besides the current one. Each is a key
	// that somebody may have lost.
	maxOld = 4
)
