// SPDX-License-Identifier: Apache-2.0

package gitrepository

import "errors"

var (
	// ErrNotGitRepository is returned when an object of another kind comes in.
	ErrNotGitRepository = errors.New("not a GitRepository")
	// errNoUser refuses a reference to a Secret that nobody answers for.
	errNoUser = errors.New("nobody is known who may get the Secret")
)
