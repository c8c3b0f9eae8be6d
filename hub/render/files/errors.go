// SPDX-License-Identifier: Apache-2.0

package files

import "errors"

// Sentinels. Errors that wrap them name the path. What is not there is
// fs.ErrNotExist.
var (
	// ErrPointer: a file whose content is stored by Git LFS and was not fetched.
	ErrPointer = errors.New("is a Git LFS pointer: its content is not in the repository, and Git LFS is not supported")
	// ErrSubmodule: a submodule stands where files are read.
	ErrSubmodule = errors.New("is a submodule, whose content is not fetched")
	// ErrLink: a symbolic link that leads nowhere, in circles, or out of the source.
	ErrLink = errors.New("a symbolic link that cannot be followed")
	// ErrOutside: a path that leads out of the source.
	ErrOutside = errors.New("leads out of the source")
	// ErrFolder: a folder stands where a file is read.
	ErrFolder = errors.New("is a folder")
	// ErrTooLarge: a limit of what one render reads.
	ErrTooLarge = errors.New("too large")
	// ErrTar: the stream of files is not one.
	ErrTar = errors.New("the files cannot be read")
)
