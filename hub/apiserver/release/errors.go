// SPDX-License-Identifier: Apache-2.0

package release

import "errors"

var (
	// errDeleting refuses a sync of a Release that is on its way out.
	errDeleting = errors.New("the Release is being deleted")
	// errOtherUID: a body that is about an earlier Release of the name.
	errOtherUID = errors.New("the Release of that name is another one now")
	// errKind: the store holds something else. It is typed by its constructor, so that
	// does not happen.
	errKind = errors.New("not a Release")
)
