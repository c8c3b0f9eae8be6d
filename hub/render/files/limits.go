// SPDX-License-Identifier: Apache-2.0

package files

import "kumodo.io/convoy/pkg/manifest"

// Limits of what one render reads.
const (
	MaxFiles     = 10_000
	MaxFileBytes = manifest.MaxFileBytes
	MaxBytes     = 128 << 20
)

// maxSeen is how many places Seen names before it names what they have in common.
const maxSeen = 16
