// SPDX-License-Identifier: Apache-2.0

package release

import "time"

const (
	// defaultInterval and defaultTimeout stand in where a Release names none.
	defaultInterval = 5 * time.Minute
	defaultTimeout  = 5 * time.Minute
	// defaultBudgetCount and defaultBudgetPercent stand in for the half of a deletion
	// budget that is not given, defaultRetryMin and defaultRetryMax for the pauses of a
	// retry; noLimit is the limit of one that names none.
	defaultBudgetCount   = 20
	defaultBudgetPercent = 50
	defaultRetryMin      = 2 * time.Second
	defaultRetryMax      = 10 * time.Minute
	noLimit              = -1
	// intervalJitter is the part of an interval by which it varies.
	intervalJitter = 0.1

	// revisionSlack: a revision may be this much older than its source's interval,
	// since that is about when the source is asked again anyway.
	revisionSlack = 5 * time.Second
	// anyAge of a revision will do.
	anyAge = 1<<63 - 1

	// firstBackoff and lastBackoff bound the pause before something is tried again
	// that may go away by itself.
	firstBackoff = time.Second
	lastBackoff  = 2 * time.Minute

	// arrivals is how long a new Release may wait for what it refers to before that
	// is said to be missing, and arrivalPause how often it is looked for.
	arrivals     = time.Second
	arrivalPause = 50 * time.Millisecond

	// unheardFor is how long what was ordered may take to come back by the watch before a
	// Release is decided on all the same.
	unheardFor = 5 * time.Second

	// soonPause is about how long until a Release is looked at again that waits for
	// something that comes within moments.
	soonPause = 300 * time.Millisecond
	// resignPerSecond paces orders that are signed anew since their key is lost, or to
	// be retired.
	resignPerSecond = 50

	// confirmedFor is how long deletions that were confirmed may be carried out.
	confirmedFor = time.Hour
	// maxActions on hooks that one order names.
	maxActions = 8
	// maxBlockers are how many Releases one that waits for others asks to be woken by.
	maxBlockers = 8
	// wakePause is how long a Release that waited for another is looked at after it.
	wakePause = 50 * time.Millisecond
	// siblingWait is how long an order that deletes something waits for Releases of the same
	// source to be rendered at the same revision.
	siblingWait = 15 * time.Second
	// siblingQuiet of that is not told.
	siblingQuiet = 3 * time.Second
	// maxIdentities of layers that are remembered, beside those of the layer read last.
	maxIdentities = 100_000
	// maxMessageBytes of what is said of another Release, or of rules.
	maxMessageBytes = 768

	// maxObstacleBytes of what an agent says that a removal waits for.
	maxObstacleBytes = 512

	// maxTextBytes of one text that values or a mutation are taken from.
	maxTextBytes = 1 << 20

	// uncertainFor is how long the host may fail to say what becomes of a namespace
	// before a deletion in it is taken for one whose cause is not known.
	uncertainFor = time.Minute

	// blockedPause is how often a deletion that waits for a cluster that is away is
	// looked at, for the Cluster may be deleted meanwhile.
	blockedPause = 10 * time.Second

	// returnSpread is the time for each Release over which those of a Cluster that
	// is back are enqueued, and maxReturnSpread the most of it.
	returnSpread    = 5 * time.Millisecond
	maxReturnSpread = 5 * time.Second
)
