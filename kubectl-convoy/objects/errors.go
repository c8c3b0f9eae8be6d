// SPDX-License-Identifier: Apache-2.0

package objects

import "errors"

var (
	// ErrFormat: an output that there is not.
	ErrFormat = errors.New("unknown output: yaml, json or names")
	// ErrObject: a text that is no object.
	ErrObject = errors.New("not an object")
	// ErrTooLarge: more than is compared.
	ErrTooLarge = errors.New("too large to compare")
)
