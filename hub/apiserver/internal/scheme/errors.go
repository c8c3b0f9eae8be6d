// SPDX-License-Identifier: Apache-2.0

package scheme

import "errors"

// ErrUnknownFieldSelector is returned for a field that a kind cannot be selected by.
var ErrUnknownFieldSelector = errors.New("field selector not supported")
