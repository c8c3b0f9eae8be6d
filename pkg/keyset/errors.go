// SPDX-License-Identifier: Apache-2.0

package keyset

import "errors"

var (
	// ErrBroken is returned for a key that cannot be read. It is never replaced:
	// what was signed or sealed with it would be lost.
	ErrBroken = errors.New("the stored key cannot be read")
	// ErrUnknownSet is returned for a name that is none of Names.
	ErrUnknownSet = errors.New("no such set of keys")
	// ErrFixed is returned for a set that cannot be rotated.
	ErrFixed = errors.New("this key is never rotated")
	// ErrEmpty is returned for the rotation of a set that has no key yet: the hub makes
	// the first one when it starts.
	ErrEmpty = errors.New("there is no key yet")
	// ErrTooMany is returned for a rotation when as many old keys as are allowed are
	// still accepted.
	ErrTooMany = errors.New("too many old keys are still accepted: retire one first")
	// ErrNoSuchKey is returned for the retirement of a key that the set does not have.
	ErrNoSuchKey = errors.New("no such key")
	// ErrCurrent is returned for the retirement of the current key.
	ErrCurrent = errors.New("the current key cannot be retired: rotate first")
)
