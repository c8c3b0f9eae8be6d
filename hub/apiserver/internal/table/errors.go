// SPDX-License-Identifier: Apache-2.0

package table

import "errors"

// ErrUnexpectedType is returned for an object of another kind than the table's.
var ErrUnexpectedType = errors.New("not an object of the table's kind")
