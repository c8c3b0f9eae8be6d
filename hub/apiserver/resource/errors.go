// SPDX-License-Identifier: Apache-2.0

package resource

import "errors"

var (
	// ErrNoStatus is returned for a status update of a kind that has none.
	ErrNoStatus = errors.New("the kind has no status")
	// ErrUnexpectedType is returned when the registry holds another kind.
	ErrUnexpectedType = errors.New("unexpected type")
)
