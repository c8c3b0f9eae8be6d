// SPDX-License-Identifier: Apache-2.0

package validation

import "time"

// Limits of what is accepted. Sizes are in bytes.
const (
	MaxClusterMetadataKeys  = 64
	MaxClusterMetadataKey   = 253
	MaxClusterMetadataValue = 1024

	// MaxAuthType bounds a type of auth that this build does not know.
	MaxAuthType = 63

	// MaxDigest bounds the digest in a confirmation.
	MaxDigest = 128

	MaxURL      = 2048
	MaxPath     = 1024
	MaxRef      = 255
	MaxInterval = 24 * time.Hour
	MaxTimeout  = 24 * time.Hour

	MinReleaseInterval = 10 * time.Second
	MinReleaseTimeout  = time.Second
	MinSourceInterval  = 5 * time.Second

	MaxJoinTTL = time.Hour
	MinJoinTTL = time.Second

	// MaxInventoryEntries of one ReleaseInventory.
	MaxInventoryEntries = 10_000
	// MaxExceptions and MaxHistory of a Release's status.
	MaxExceptions = 64
	MaxHistory    = 10
	// MaxAPIVersions of a Cluster's status.
	MaxAPIVersions = 512
)
