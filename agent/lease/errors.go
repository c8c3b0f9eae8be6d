// SPDX-License-Identifier: Apache-2.0

package lease

import "errors"

// Errors of the room.
var (
	// ErrLost is the cause with which the context of a holder ends: the Lease could
	// not be renewed in time, or somebody else has it.
	ErrLost = errors.New("the Lease is lost")
	// ErrOptions: the Elector was not given what it needs.
	ErrOptions = errors.New("lease: Config, Namespace and Holder are required")

	errNotFound = errors.New("no Lease")
	errExists   = errors.New("there is a Lease")
	errChanged  = errors.New("the Lease has changed")
)
