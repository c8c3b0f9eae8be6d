// SPDX-License-Identifier: Apache-2.0

package release

import "errors"

var (
	// errDeleting refuses a sync of a Release that is on its way out.
	errDeleting = errors.New("the Release is being deleted")
	// errOtherUID: a body that is about an earlier Release of the name.
	errOtherUID = errors.New("the Release of that name is another one now")
	// errSuspended refuses a sync that would have to wait until somebody lifts that.
	errSuspended = errors.New("the Release is suspended: set spec.suspend to false, and what is new is applied")
	// errNotHeld and errOtherPrune refuse a confirmation of deletions.
	errNotHeld    = errors.New("no deletions are held: there is nothing to confirm")
	errOtherPrune = errors.New("what would be deleted is no longer what the confirmation names: look at status.heldPrune and confirm that")
	// errKind: the store holds something else. It is typed by its constructor, so that
	// does not happen.
	errKind = errors.New("not a Release")
)
