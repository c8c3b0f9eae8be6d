// SPDX-License-Identifier: Apache-2.0

package offline

import "time"

const (
	// maxRounds in which a render is given more of the source.
	maxRounds = 16
	// maxFolderDepth of the source, links followed.
	maxFolderDepth = 64

	// maxStackBytes is the stack of one goroutine of a worker.
	maxStackBytes = 64 << 20
	// workerGCPercent is GOGC in a worker.
	workerGCPercent = 400
	// watchEvery is how often a worker looks at its memory.
	watchEvery = 20 * time.Millisecond
	// maxStderrBytes is how much of what a worker says to people is kept, its beginning.
	maxStderrBytes = 1 << 20
	// maxReasonBytes of a dead worker's last words that an error repeats.
	maxReasonBytes = 120
	// graceCPU beyond its processor time, after which the kernel kills a worker that has
	// not ended itself.
	graceCPU = 2 * time.Second

	// jobTime is the wall time of one render, jobCPU its processor time.
	jobTime = 30 * time.Second
	jobCPU  = 20 * time.Second
	// maxStreamBytes that a worker may answer.
	maxStreamBytes = 256 << 20
)

// Limits of one render. Zero values mean no limit of that sort.
type Limits struct {
	// Wall time and processor time.
	Wall, CPU time.Duration
	// ResidentBytes that a render may have in memory.
	ResidentBytes int64
	// AddressBytes that it may map beyond what it has at its start, where the system can
	// say so.
	AddressBytes int64
	// HeapBytes is where the garbage collector begins to work harder.
	HeapBytes int64
	// OutBytes of what it prints.
	OutBytes int64
}

// HubLimits are those that the hub renders under, so that what is too much for it is too
// much here: a test of the whole tree holds the numbers equal.
var HubLimits = Limits{
	Wall: jobTime, CPU: jobCPU, OutBytes: maxStreamBytes,
	ResidentBytes: 768 << 20, AddressBytes: 3 << 30, HeapBytes: 512 << 20,
}
