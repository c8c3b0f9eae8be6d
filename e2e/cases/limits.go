// SPDX-License-Identifier: Apache-2.0

package cases

import "time"

const (
	// maxFile is the size of a case file, maxFill what a fill may ask for, and
	// maxCopies how many copies.
	maxFile   = 16 << 20
	maxFill   = 64 << 20
	maxCopies = 10_000
	// maxGrown files that a repository may gain.
	maxGrown = 100_000

	// pollPause between two looks, quiet is how long nothing may have changed for a
	// Release that is not Ready to be at rest, and defaultRest the longest wait for
	// that.
	pollPause = 150 * time.Millisecond
	quiet     = 3 * time.Second
	// calm is the same for one that is applied and in sync, and says itself that it waits
	// for health alone, which may never come.
	calm        = 10 * time.Second
	defaultRest = 60 * time.Second
	// polls of each live object at a check, pollGap apart: what moves between them is
	// being written.
	polls   = 3
	pollGap = 700 * time.Millisecond

	// maxMet is how many documents of a render are looked for by themselves.
	maxMet = 100

	// maxShown is the length of a text in what is printed, in bytes.
	maxShown = 400

	// patience bounds what should take seconds: a start, a join, a deletion.
	patience = 2 * time.Minute
)
