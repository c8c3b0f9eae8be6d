// SPDX-License-Identifier: Apache-2.0

package deletion

import "time"

const (
	// confirmedFor is how long a confirmation is good, and maxConfirmed how many are
	// kept at once.
	confirmedFor = time.Hour
	maxConfirmed = 100_000
	// recordTimeout bounds the writes that record what was held, and recorders is how
	// many are made at once.
	recordTimeout = 30 * time.Second
	recorders     = 8
	// recordAgain is how old the record of a refusal gets before the same refusal is
	// recorded again: a controller that tries for ever costs few writes.
	recordAgain = 10 * time.Minute
	// named is how many objects a message names.
	named = 3
)
