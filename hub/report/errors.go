// SPDX-License-Identifier: Apache-2.0

package report

import "errors"

var (
	// ErrGone: the object was deleted, or another one has its name now. There is
	// nothing left to write about.
	ErrGone = errors.New("the object is gone")
	// ErrTooMany: more orders were given back at once than are taken.
	ErrTooMany = errors.New("too many orders at once")
)
