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

	// maxKills of an agent in a row.
	maxKills = 100
	// stepLimit is the longest that a step may take. listWait bounds one answer of a
	// cluster, oneList the list of one kind, and othersWait what else is in a namespace: an
	// API may never answer.
	stepLimit  = 25 * time.Minute
	listWait   = 20 * time.Second
	othersWait = time.Minute
	oneList    = 10 * time.Second
	// maxSlow lists of one API are waited for.
	maxSlow = 1
	// maxName of a file in a repository, but for what tells it from others.
	maxName = 100

	// patience bounds what should take seconds: a start, a join, a deletion.
	patience = 2 * time.Minute
)
