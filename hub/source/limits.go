// SPDX-License-Identifier: Apache-2.0

package source

import "time"

const (
	// resolveTimeout of listing a remote's refs, and silentTimeout of it where there was
	// no answer in time the last time; each fullEvery-th time it has all of it again.
	resolveTimeout = 20 * time.Second
	silentTimeout  = 5 * time.Second
	fullEvery      = 4
	// fetchTimeout of fetching and unpacking one commit.
	fetchTimeout = 2 * time.Minute

	// maxResolves and maxFetches at once, over all sources. A fetch is a process.
	maxResolves = 32
	maxFetches  = 4
	// maxLooksPerTenant and maxFetchesPerTenant at once, of all hosts.
	maxLooksPerTenant   = 10
	maxFetchesPerTenant = 2
	// maxLooksPerHost and maxFetchesPerHost at once, so that one slow host leaves room
	// for the others; the names of maxHosts are remembered.
	maxLooksPerHost   = 8
	maxFetchesPerHost = 3
	maxHosts          = 10_000
	// maxSourceWait that a source is left alone for when its server asks for that, and
	// maxHostWait that all other sources of the host are; maxWaits are remembered.
	maxSourceWait = time.Hour
	maxHostWait   = 2 * time.Minute
	maxWaits      = 10_000

	// defaultCacheBytes of the snapshots on disk.
	defaultCacheBytes = 2 << 30
	// maxOpenSnapshots are kept open, with their indexes in memory.
	maxOpenSnapshots = 32
	// maxKnown is how many (source, ref) pairs are remembered.
	maxKnown = 50_000

	// maxImages are remembered with their digests; the older half goes when there are
	// more. maxImagesBytes of the file that has them.
	maxImages      = 20_000
	maxImagesBytes = 16 << 20
	// maxRegistries of a namespace whose credentials are offered to a chart's dependencies.
	maxRegistries = 64

	// firstPause after a remote failed, doubled with each further failure up to
	// lastPause. In between the failure is answered without asking again.
	firstPause = 5 * time.Second
	lastPause  = time.Minute

	// maxMessageBytes of an error for a status.
	maxMessageBytes = 512

	// MinInterval of a source.
	MinInterval = 5 * time.Second
)
