// SPDX-License-Identifier: Apache-2.0

package oci

const (
	// MaxManifestBytes of a manifest, and of one page of tags or referrers.
	MaxManifestBytes = 4 << 20
	// maxLayers of an artifact.
	maxLayers = 64
	// maxTags of a repository that a range is looked for in; maxPages they come in.
	maxTags  = 100_000
	maxPages = 1000
	// tagPage is how many tags are asked for at once.
	tagPage = 1000
	// maxReferrers of one artifact that are looked at.
	maxReferrers = 1000
)
