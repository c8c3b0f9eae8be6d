// SPDX-License-Identifier: Apache-2.0

package scheme

import "errors"

var (
	// ErrUnknownFieldSelector is returned for a field that a kind cannot be selected by.
	ErrUnknownFieldSelector = errors.New("field selector not supported")
	// errQuery: a conversion was called with types that it is not registered for.
	errQuery = errors.New("not a query of a preview")
)
