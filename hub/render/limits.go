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
	// announcedBytes: a file of that size is announced before it is parsed, so that
	// a worker that dies of it leaves its name.
	announcedBytes = 64 << 10
)

// workerLimits of a render worker. The files of a job are 128 MiB at most.
var workerLimits = worker.Limits{
	ResidentBytes: 768 << 20, AddressBytes: 3 << 30, HeapBytes: 512 << 20,
	JobCPU: jobCPU, Jobs: jobsPerWorker,
}
