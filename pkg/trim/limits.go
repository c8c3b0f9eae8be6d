// SPDX-License-Identifier: Apache-2.0

package trim

import "time"

const (
	// Interval between two looks.
	Interval = 15 * time.Second
	// Gap between two trims, at least: a collection of a live GiB takes a second of CPU.
	Gap = time.Minute
	// calm: less than one calm-th of what is live was allocated since the last look, or
	// no more than calmFloor, which scrapes and probes of a small process take.
	calm      = 8
	calmFloor = 1 << 20
	// MinGain, and one gain-th of what is live, is what a trim has to promise.
	MinGain = 16 << 20
	gain    = 8
)
