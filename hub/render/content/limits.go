// SPDX-License-Identifier: Apache-2.0

package content

const (
	// minSecretBytes: shorter texts of Secrets would seal half of each render, as with
	// "true" or "5432".
	minSecretBytes = 6
	// minLineBytes of one line of a text with several, where it is looked for by itself.
	minLineBytes = 8
	// minKeyBytes of a text of a Secret that a key may not contain: shorter ones are
	// words of which keys are made.
	minKeyBytes = 12
	// maxWordBytes of a text of a Secret that could be an ordinary word.
	maxWordBytes = 20
	// maxSecretTexts that are looked for, each form of a text by itself. More of them
	// are refused: one that is not looked for might show.
	maxSecretTexts = 1 << 18
	// maxImages that one render may name.
	maxImages = 2000
	// maxValuesBytes of one text of values.
	maxValuesBytes = 1 << 20
	// maxHookSeconds that a run of a hook may take: a day.
	maxHookSeconds = 24 * 60 * 60
	// maxSetDepth of a targetPath.
	maxSetDepth = 64
)
