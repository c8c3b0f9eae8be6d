// SPDX-License-Identifier: Apache-2.0

package state

import "errors"

var (
	// errTorn: the chunks of a layer are not all there.
	errTorn = errors.New("the layer is not whole")
	// errUnreadable: a record is not one that this version wrote.
	errUnreadable = errors.New("the record cannot be read")
)
