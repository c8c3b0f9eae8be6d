// SPDX-License-Identifier: Apache-2.0

package deliver

import "errors"

var (
	// ErrNothingOrdered: nothing was ever ordered for this Release, so that there
	// is nothing to undo on its cluster.
	ErrNothingOrdered = errors.New("nothing was ever ordered")
	// ErrBusy: another makes the last order of that Release at this moment.
	ErrBusy = errors.New("the last order is being stored")
	// ErrStored: what lies under one of our keys is no order of ours.
	ErrStored = errors.New("a stored order cannot be read")
	// ErrOptions: an option that is required is missing.
	ErrOptions = errors.New("deliver cannot work with these options")
)
