// SPDX-License-Identifier: Apache-2.0

package archive

// Limits of a tree. What is beyond them is refused, and the error names the limit
// and, where there is one, the file. Those that have to do with files are the same
// as for a Git repository.
const (
	// MaxArchiveBytes of one archive, packed.
	MaxArchiveBytes = 128 << 20
	// MaxFileBytes of one file.
	MaxFileBytes = 32 << 20
	// MaxBytes of all files of a tree.
	MaxBytes = 128 << 20
	// MaxFiles of a tree.
	MaxFiles = 10_000

	// maxEntries of an archive, folders included.
	maxEntries = 50_000
	// maxUnpackedBytes of one archive, with its headers and what is skipped.
	maxUnpackedBytes = 256 << 20
	// maxPathBytes and maxPathDepth of a file's path.
	maxPathBytes = 1024
	maxPathDepth = 64
)
