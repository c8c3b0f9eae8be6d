// SPDX-License-Identifier: Apache-2.0

package oci

import "time"

const (
	// maxManifestBytes of one of our manifests.
	maxManifestBytes = 64 << 10
	// maxMetadataBytes of a page of tags.
	maxMetadataBytes = 4 << 20
	// tagPage is how many tags are asked for at once, maxPages how often.
	tagPage  = 1000
	maxPages = 10_000
	// maxRemembered is of how many blobs it is remembered when they were put.
	maxRemembered = 200_000
	// refresh is how old a blob's manifest may be that is not written anew when the
	// blob is put again. It is far below the time that an unused blob is kept.
	refresh = time.Hour
	// maxUnknown is how often a manifest is put whose blobs the registry does not know
	// though they were put, unknownPause the first pause between; each is twice as long.
	maxUnknown   = 5
	unknownPause = 50 * time.Millisecond
	// maxConnections to the registry.
	maxConnections = 16
	headerTimeout  = time.Minute
)
