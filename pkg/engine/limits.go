// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	judged "kumodo.io/convoy/pkg/health"
)

// Limits of the engine. None of them is a setting: what a user may choose is in
// the order's policy.
const (
	// maxActive is how many Releases work at the same time. One that waits for
	// health holds no place.
	maxActive = 12
	// maxCalls is how many requests, watches left out, are on their way at once.
	maxCalls = 32
	// maxParallel is how many objects of one Release are worked on at once.
	maxParallel = 8
	// maxReleases that one Runner keeps.
	maxReleases = 10000

	// callTimeout is the deadline of one request; webhooks may take 30 s.
	callTimeout = 35 * time.Second
	// maxAnswer is the largest answer that is read, maxStatus the largest error.
	maxAnswer = 16 << 20
	maxStatus = 256 << 10
	// maxThrottled is how often a request is repeated when the server says 429.
	maxThrottled = 4

	// pageSize of a list, so that no list is held whole.
	pageSize = 50
	// watchMin and watchMax bound the time after which a watch is renewed.
	watchMin = 30 * time.Minute
	watchMax = 60 * time.Minute
	// watchRetryMin and watchRetryMax bound the pause after a failed watch.
	watchRetryMin = 500 * time.Millisecond
	watchRetryMax = 30 * time.Second
	// watchShort: one that ends sooner counts as failed.
	watchShort = 5 * time.Second

	// retryMin and retryMax bound the pause before an operation that failed is
	// tried again; objectRetryMin and objectRetryMax before one object is.
	retryMin       = 2 * time.Second
	retryMax       = 10 * time.Minute
	objectRetryMin = 250 * time.Millisecond
	objectRetryMax = 30 * time.Second
	// retryFloor is the least pause that an order may ask for, maxRetrySeconds the most.
	retryFloor      = time.Second
	maxRetrySeconds = 24 * 60 * 60
	// locateRetryMin and locateRetryMax bound the pause before it is asked again where
	// a kind lives that was not found at the start.
	locateRetryMin = 5 * time.Second
	locateRetryMax = 5 * time.Minute
	// maxRaces is how often one object is looked at again because it changed
	// between the look and the apply.
	maxRaces = 8
	// schemaLag is how long a server may take to follow a definition that has changed. An
	// object that is refused for longer is wrong.
	schemaLag = 10 * time.Second
	// racesTold is how often in a row that has to end so before it is told.
	racesTold = 8

	// defaultTimeout of a wave, for orders that say none.
	defaultTimeout = 5 * time.Minute
	// goneRecheck is how often an object whose deletion was asked for is looked
	// at, should its watch event be missed.
	goneRecheck = 30 * time.Second
	// leavingAfter is how long a deletion may take before the inventory is told of it.
	leavingAfter = 3 * time.Second

	// reportEvery is the least time between two reports of a Release that is in
	// motion. A settled one is said at once.
	reportEvery = 100 * time.Millisecond
	// saveAfter is how long a finished repair waits to be written down.
	saveAfter = 2 * time.Second
	// counterBlock is how many report counters one write to State reserves.
	counterBlock = 100000

	// defaultBudgetCount objects, or defaultBudgetPercent of those of the last render,
	// whichever is more, are deleted by one sync that nobody confirmed, if the order says
	// nothing else. maxHeldObjects of a list that waits are named.
	defaultBudgetCount   = 20
	defaultBudgetPercent = 50
	maxHeldObjects       = 10

	// maxExceptions and maxMessage of a report.
	maxExceptions = 64
	maxMessage    = 512
	// maxLeft objects that were left behind are held to be named.
	maxLeft = 16
	// maxFields named in one message.
	maxFields = 5

	// healBurst repairs of one object are made at once, and one more each
	// healRefill; beyond that the object is Contested and repaired after pauses
	// from contestMin to contestMax, forgotten after contestForget of peace.
	healBurst     = 20
	healRefill    = 3 * time.Second
	contestMin    = time.Second
	contestMax    = 5 * time.Minute
	contestForget = 10 * time.Minute
	// contestCalm without a change after the last pause ends a fight, or as long as that
	// pause was, if it was longer.
	contestCalm = 30 * time.Second
	// judgeEvery is the least time between two comparisons of an object that differs and
	// is not repaired.
	judgeEvery = time.Second
	// maxKept live objects of one Release wait for repair with their content; what
	// is beyond is read again.
	maxKept = 16

	// removeGrace is how long a removal waits for a Release of the same name that may
	// have been made anew: both arrive together when a cluster comes back.
	removeGrace = 300 * time.Millisecond

	// maxHooks of one render; maxHookRuns are kept of a Release and reported, and no
	// more than maxHookRecords, whatever they left on the cluster.
	maxHooks       = 256
	maxHookRuns    = 32
	maxHookRecords = 512

	// maxAhead is how far a sequence may be ahead of the hub's time.
	maxAhead = 24 * time.Hour
	// maxOrderAge is how old a remove order may be when it comes.
	maxOrderAge = 30 * 24 * time.Hour
	// maxLayer is the largest layer that is staged, maxRules the largest of health rules.
	maxLayer = 256 << 20
	maxRules = judged.MaxDocument

	// degradedAfter is how long an object has to be Degraded before that is said, unless
	// it says itself that it has failed for good; until then it is Progressing.
	degradedAfter = 5 * time.Second
	// graceMost is how much longer that may take where its kind needs it.
	graceMost = 2 * time.Minute
	// An object that stopped being healthy maxFalls times within fallWindow, and not by a
	// change of its specification, is healthy again when it was for healthyAfter.
	maxFalls     = 3
	fallWindow   = 10 * time.Minute
	healthyAfter = 30 * time.Second
	// stateAfter is how long a changed health of an object waits to be written down,
	// so that a restart knows since when it is so.
	stateAfter = time.Minute

	// watchStale is how long a watch may fail before what it showed counts as old.
	watchStale = time.Minute

	// maxIgnores rules of one order leave fields to others, each with so many pointers
	// and managers; maxPointer is the longest pointer, in bytes.
	maxIgnores        = 32
	maxIgnorePointers = 64
	maxIgnoreManagers = 16
	maxPointer        = 1 << 10

	// scalerPages of scalerPage autoscalers of a namespace are looked through for one
	// that targets an object.
	scalerPage  = 500
	scalerPages = 20
	// rescaleEvery is how often it is looked whether an autoscaler that was found is there.
	rescaleEvery = time.Minute
	// unscaledFor is how long a number stays that no autoscaler aims at any more.
	unscaledFor = time.Minute

	// maxLives answers about live objects are made at once, for maxLiveLooks objects of
	// each with a dry run, maxLiveParallel at once, within liveTimeout: the hub waits for
	// 30 s.
	maxLives        = 2
	maxLiveLooks    = 64
	maxLiveParallel = 4
	liveTimeout     = 20 * time.Second
)
