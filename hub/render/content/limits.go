// SPDX-License-Identifier: Apache-2.0

package content

const (
	// minSecretBytes: shorter texts of Secrets would seal half of each render, as with
	// "true" or "5432".
	minSecretBytes = 6
	// maxSecretTexts that are looked for.
	maxSecretTexts = 4096
	// maxImages that one render may name.
	maxImages = 2000
	// maxValuesBytes of one text of values.
	maxValuesBytes = 1 << 20
	// maxSetDepth of a targetPath.
	maxSetDepth = 64
)
