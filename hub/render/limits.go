// SPDX-License-Identifier: Apache-2.0

package render

import (
	"time"

	"kumodo.io/convoy/hub/worker"
)

const (
	// jobTime is the wall time of one render, jobCPU its processor time.
	jobTime = 30 * time.Second
	jobCPU  = 20 * time.Second
	// jobsPerWorker before it is replaced.
	jobsPerWorker = 200
	// idleTime after which a tenant's worker is ended.
	idleTime = 5 * time.Minute
	// maxStreamBytes that a worker may answer: twice a layer's limit would not fit
	// the store anyway.
	maxStreamBytes = 256 << 20
	// maxMessageBytes of an error that a worker sends.
	maxMessageBytes = 16 << 10
	// maxRounds of one render: each gives it more of what it asks for.
	maxRounds = 64
	// maxPaths of a source that one render may ask for.
	maxPaths = 1024
	// maxReads that a worker may name, of maxReadBytes each.
	maxReads     = 192
	maxReadBytes = 2 << 10
	// maxShared renders are remembered, so that others with the same inputs have them
	// without a render: some 20 MiB.
	maxShared = 20_000
	// failureTime that a render which failed for its inputs is not made again;
	// maxFailures are remembered, with messages of maxMessageBytes at most.
	failureTime = 10 * time.Minute
	maxFailures = 500
	// maxReadSets: so many different sets of facts may renders of one static input have
	// read before the oldest is forgotten.
	maxReadSets = 32
	// maxWordBytes of a word that a worker says about a render, and maxWarnings of it.
	maxWordBytes = 512
	maxWarnings  = 16
	// announcedBytes: a file of that size is announced before it is parsed, so that
	// a worker that dies of it leaves its name.
	announcedBytes = 64 << 10
)

// workerLimits of a render worker. The files of a job are 128 MiB at most.
var workerLimits = worker.Limits{
	ResidentBytes: 768 << 20, AddressBytes: 3 << 30, HeapBytes: 512 << 20,
	JobCPU: jobCPU, Jobs: jobsPerWorker,
}
