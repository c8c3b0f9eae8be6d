// SPDX-License-Identifier: Apache-2.0

package release

import "errors"

var (
	// ErrNotRelease is returned when an object of another kind comes in.
	ErrNotRelease = errors.New("not a Release")
	// errDeleting refuses a sync of a Release that is on its way out.
	errDeleting = errors.New("the Release is being deleted")
)
