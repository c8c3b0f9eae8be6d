// SPDX-License-Identifier: Apache-2.0

package report

import "time"

// Limits of what is written and of when.
const (
	// coalesceWindow is how long reports about one Release are folded together.
	coalesceWindow = 200 * time.Millisecond
	// blockedAfter is how long progress is held in memory before it is worth a
	// write of its own, and how far apart such writes are.
	blockedAfter = 30 * time.Second
	// troubleAfter is how long a Release that had settled may be out of sync or
	// unhealthy before that is written down, the first time: a repair is quicker and
	// leaves one write, that it was made.
	troubleAfter = 2 * time.Second
	// noticeApart is how far apart writes are that are made only since other objects are in
	// trouble than before, or are seen to be held while they are deleted.
	noticeApart = 5 * time.Second
	// operationRepeat: the same operation with the same message within this time
	// is not written down again, so that a retry loop costs no writes.
	operationRepeat = time.Minute
	// retryAfter is the pause after a write that failed.
	retryAfter = time.Second
	// takeTimeout is the longest that an agent waits for its reports to be written.
	takeTimeout = 10 * time.Second
	// writeTimeout ends one write.
	writeTimeout = 10 * time.Second

	// heldPatience is how long an agent may take to give back the orders that it was
	// asked for, before it is said that it does not.
	heldPatience = 15 * time.Second

	// heldFor is how long it stands in a status that a deletion was held, unless it is
	// tried again, or known before to be out of date.
	heldFor = 24 * time.Hour
	// heldEvents is how many held deletions of Releases of a namespace have an Event of
	// their own within heldEventWindow.
	heldEvents      = 10
	heldEventWindow = time.Minute

	// writers is the number of status writes under way at once.
	writers = 16
	// sweepPerSecond paces the Unknown that a lost Cluster gives to its Releases.
	sweepPerSecond = 50
	// askers is the number of live questions to agents under way at once.
	askers = 8
	// askTimeout ends one live question.
	askTimeout = 10 * time.Second

	maxMessage       = 1024
	maxReason        = 64
	maxExceptions    = 64
	maxExceptionText = 512
	maxName          = 253
	maxHistory       = 10
	maxInventory     = 10_000
	// maxHooks are the runs of hooks that are listed, maxHookName the name of one: of an
	// object of the render it is Kind/namespace/name.
	maxHooks    = 32
	maxHookName = 3*maxName + 2
	// maxHeldObjects of a prune that is held are named.
	maxHeldObjects = 10
	// maxLeftNamed is how many objects that are left behind an Event names.
	maxLeftNamed = 8
	// maxUnknown is how many Releases that do not exist here are listed.
	maxUnknown = 16
)
