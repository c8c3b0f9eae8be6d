// SPDX-License-Identifier: Apache-2.0

package local

import "time"

// Limits of the engines in the hub's process.
const (
	// MaxClusters is how many of them have an engine at once. Further Clusters are
	// told so, and get one when another goes.
	MaxClusters = 200
	// maxProbes at the same time, and probeTimeout of one.
	maxProbes    = 16
	probeTimeout = 15 * time.Second
	// confirmAfter a probe that failed it is made once more, before a Cluster that was
	// reachable is said not to be.
	confirmAfter = time.Second
	// retryMin and retryMax bound the pause after a probe that failed.
	retryMin = time.Second
	retryMax = time.Minute
	// suspectGap is the least time between two probes that were made because a call of
	// the engine failed.
	suspectGap = 10 * time.Second
	// compareEvery so often what engine and hub hold is compared without a change.
	compareEvery = 5 * time.Minute
	// loadedPoll is how often it is looked whether an engine has read its state.
	loadedPoll = 50 * time.Millisecond

	// reportGap between two reports about one Release, maxBatch in one call, maxPosts
	// calls at once for one Cluster, postTimeout of one.
	reportGap   = 200 * time.Millisecond
	maxBatch    = 256
	maxPosts    = 4
	postTimeout = time.Minute
	// maxPending Releases whose reports wait for one Cluster.
	maxPending = 2 * 10000

	// maxFetches of layers at once, for all Clusters.
	maxFetches = 32

	// liveTimeout of one question for live detail.
	liveTimeout = 30 * time.Second

	// maxKubeconfig that is read.
	maxKubeconfig = 256 << 10
	// maxAPIVersions and maxWord bound what a cluster says of itself.
	maxAPIVersions = 512
	maxWord        = 128
	// maxFormer targets of a Cluster are remembered.
	maxFormer = 8
	// maxMessage of a condition.
	maxMessage = 512

	// Settings of connections to clusters: an idle one is asked whether it lives.
	idleConns   = 4
	idleTimeout = 90 * time.Second
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
	tlsTimeout  = 10 * time.Second
)
