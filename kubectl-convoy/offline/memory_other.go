// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package offline

// limitAddress has no limit to set here: what the process has in memory is watched.
func limitAddress(int64) error { return nil }

// resident is what the process has in memory, in bytes.
func resident() int64 { return used() }
