// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"errors"

	"kumodo.io/convoy/pkg/keyset"
)

var (
	// ErrNotFound is returned by a Vault for a name that it does not have.
	ErrNotFound = errors.New("no such Secret")
	// ErrConflict is returned by a Vault when somebody else wrote first.
	ErrConflict = errors.New("somebody else wrote the key first")
	// ErrMissing is returned when a Secret that the manifests ship empty is not there.
	ErrMissing = errors.New("the Secret must exist, empty at first: apply the hub's manifests")
	// ErrBroken is returned for a key that cannot be read. It is never replaced:
	// what was signed or sealed with it would be lost.
	ErrBroken = keyset.ErrBroken
	// ErrProof is returned for a request that no role of this hub made, or not now.
	ErrProof = errors.New("the request is not proven to be the hub's own")
)
