// SPDX-License-Identifier: Apache-2.0

package worker

import "time"

const (
	// MaxFrameBytes is the payload of one frame.
	MaxFrameBytes = 1 << 20

	// maxStackBytes is the stack of one goroutine in a worker. Go's own limit of
	// 1 GB would let a recursion take a gigabyte before it ends.
	maxStackBytes = 64 << 20
	// workerGCPercent is GOGC in a worker.
	workerGCPercent = 400
	// maxOpenFiles in a worker.
	maxOpenFiles = 64
	// watchEvery is how often the parent looks at a busy worker's memory.
	watchEvery = 20 * time.Millisecond
	// maxStderrBytes is how much of a worker's stderr is kept, its beginning.
	maxStderrBytes = 4 << 10
	// maxReasonBytes is how much of the first line of stderr an error repeats.
	maxReasonBytes = 120
	// startupCPU is what a worker may use besides its jobs.
	startupCPU = 20 * time.Second
)

// Limits of a worker, set by the parent and taken over by the worker from its
// arguments. Zero values mean no limit of that sort.
type Limits struct {
	// ResidentBytes: the parent kills a worker that has more in memory.
	ResidentBytes int64
	// AddressBytes that a worker may map beyond what it has at its start.
	AddressBytes int64
	// HeapBytes is where the garbage collector begins to work harder.
	HeapBytes int64
	// FileBytes is the size of the largest file that it may write.
	FileBytes int64
	// JobCPU is the processor time of one job.
	JobCPU time.Duration
	// Jobs is how many jobs a worker does before it is replaced.
	Jobs int
}
