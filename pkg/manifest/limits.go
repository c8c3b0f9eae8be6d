// SPDX-License-Identifier: Apache-2.0

package manifest

// Limits of a render. What is beyond them is refused by name, never cut.
const (
	// MaxObjects is the number of objects in one render.
	MaxObjects = 10_000
	// MaxLineBytes is the size of one object's line in either layer.
	MaxLineBytes = 8 << 20
	// MaxFileBytes is the size of one file that Parse reads.
	MaxFileBytes = 32 << 20
	// MaxDepth is how deep maps and lists may nest in one object.
	MaxDepth = 256
	// MaxDocuments is the number of documents in one file.
	MaxDocuments = 20_000

	// maxValues bounds the values of one document, by the characters that separate
	// them: the parser needs some 250 bytes for each.
	maxValues = 1_000_000

	// maxAliasNodes and maxAliasBytes bound what aliases may add to one file
	// beyond what is written in it.
	maxAliasNodes = 100_000
	maxAliasBytes = MaxLineBytes

	// maxShownErrors is how many errors of a render one message spells out.
	maxShownErrors = 20
	// maxErrorsPerFile stops a file that has nothing but errors.
	maxErrorsPerFile = 50
	// maxShownText cuts words of the input that a message repeats (names and
	// keys, never values).
	maxShownText = 128

	// maxHeaderBytes bounds the header line of either layer.
	maxHeaderBytes = 256 << 10
	// readBuffer of a layer. Most renders are small and each is opened four times while
	// it is rolled out, so that a larger one would be most of what that allocates.
	readBuffer = 16 << 10
	// saltBytes is the size of the sealed layer's salt.
	saltBytes = 32
)
