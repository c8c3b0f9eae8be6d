// SPDX-License-Identifier: Apache-2.0

package snapshot

import "errors"

// Sentinels. Errors that wrap them name the path.
var (
	// ErrPathNotFound: the tree has no such path.
	ErrPathNotFound = errors.New("no such path in the source")
	// ErrPath: a path that no tree can have: absolute, or leading out of the tree.
	ErrPath = errors.New("not a path inside the source")
	// ErrLink: a symbolic link that cannot be followed.
	ErrLink = errors.New("a symbolic link that cannot be followed")
	// ErrTooLarge: more below one path than a snapshot may have.
	ErrTooLarge = errors.New("too much below one path")
	// ErrCorrupt: the files on disk are not those of a snapshot.
	ErrCorrupt = errors.New("a snapshot on disk is corrupt")
)
