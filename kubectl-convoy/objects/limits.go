// SPDX-License-Identifier: Apache-2.0

package objects

const (
	// maxBytes of the manifests that a render is compared with.
	maxBytes = 128 << 20
	// maxFiles of them.
	maxFiles = 10_000
	// contextLines around a difference.
	contextLines = 3
)
