// SPDX-License-Identifier: Apache-2.0

package etcd

import "errors"

var (
	// ErrLocked is returned when another process uses the data directory.
	ErrLocked = errors.New("the data directory is in use by another process")
	// ErrStart is returned when the member did not become ready.
	ErrStart = errors.New("embedded etcd did not become ready")
	// ErrNoSpace is what Health says while etcd refuses writes.
	ErrNoSpace = errors.New("embedded etcd is out of space and refuses writes")
	// ErrStopped is what Health says before the start and after the end.
	ErrStopped = errors.New("embedded etcd is not running")
)
