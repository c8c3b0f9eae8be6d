// SPDX-License-Identifier: Apache-2.0

package backup

import "errors"

var (
	// ErrCursor is returned for a cursor that no answer gave.
	ErrCursor = errors.New("not a cursor of a backup")
	// ErrTooOld is returned when etcd has compacted the state that a backup began
	// with. It has to be begun again.
	ErrTooOld = errors.New("the backup took too long and has to be begun again")
	// ErrNotEmpty is returned for a restore into a hub that has something already.
	ErrNotEmpty = errors.New("the hub is not empty")
	// ErrOtherHub is returned for a backup of another hub, whose keys this one lacks.
	ErrOtherHub = errors.New("the backup is of another hub: restore its keys first")
	// ErrPiece is returned for a piece that cannot be written.
	ErrPiece = errors.New("a piece of the backup cannot be restored")
	// ErrRestored ends the hub's process after a restore: it has to start again on what
	// is there now.
	ErrRestored = errors.New("restored: the hub ends, to be started again")
)
