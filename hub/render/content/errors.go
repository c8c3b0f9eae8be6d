// SPDX-License-Identifier: Apache-2.0

package content

import "errors"

// Sentinels. Errors that wrap them name the file.
var (
	// ErrEmpty: there are no objects. What runs is kept.
	ErrEmpty = errors.New("empty render: there are no objects under the path")
	// ErrPointer: a file whose content is stored by Git LFS and was not fetched.
	ErrPointer = errors.New("is a Git LFS pointer: its content is not in the repository, and Git LFS is not supported")
	// ErrSubmodule: a submodule stands where files are read.
	ErrSubmodule = errors.New("is a submodule, whose content is not fetched")
	// ErrTooLarge: a limit of a render.
	ErrTooLarge = errors.New("too large")
	// ErrTar: the stream of files is not one.
	ErrTar = errors.New("the files cannot be read")
)
