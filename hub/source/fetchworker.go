// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/git"
	"kumodo.io/convoy/hub/source/registry"
	"kumodo.io/convoy/hub/worker"
)

// WorkerName is the first argument of a fetch worker's process.
const WorkerName = "fetch-worker"

// workerLimits of a fetch. The largest things in its memory are one file, the base
// of its delta, and the cache of bases.
var workerLimits = worker.Limits{
	ResidentBytes: 512 << 20, AddressBytes: 2 << 30, HeapBytes: 320 << 20,
	FileBytes: git.MaxTransferBytes + 1<<20, JobCPU: time.Minute, Jobs: 1,
}

// fetchJob goes to a fetch worker: one of Git and Registry. It has credentials in it.
type fetchJob struct {
	Git      *gitJob       `json:"git,omitempty"`
	Registry *registry.Job `json:"registry,omitempty"`
	Dir      string        `json:"dir"`
	Timeout  time.Duration `json:"timeout"`
}

// gitJob is one commit of a repository.
type gitJob struct {
	Remote git.Remote `json:"remote"`
	Commit string     `json:"commit"`
}

// fetchFailure comes back when it went wrong.
type fetchFailure struct {
	Class      fault.Class   `json:"class"`
	Message    string        `json:"message"`
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
}

// Main is the fetch worker: it confines itself, fetches what its parent asks for,
// and gives an exit code. args are those after WorkerName.
func Main(args []string, stdin io.Reader, stdout io.Writer) int {
	limits, err := worker.Confine(args, worker.BarrierProcess)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := worker.Serve(stdin, stdout, limits, fetch); err != nil {
		return 1
	}
	return 0
}

func fetch(call *worker.Call) (done, failed any) {
	var job fetchJob
	if err := json.Unmarshal(call.Job, &job); err != nil {
		return nil, fetchFailure{Class: fault.ClassInvalid, Message: "a job that cannot be read"}
	}
	ctx, cancel := context.WithTimeout(context.Background(), job.Timeout)
	defer cancel()
	fetched, err := job.do(ctx)
	if err != nil {
		failed := fetchFailure{Class: fault.ClassOf(err), Message: err.Error()}
		var own *fault.Error
		if errors.As(err, &own) {
			failed.RetryAfter, failed.Message = own.RetryAfter, own.Error()
		}
		return nil, failed
	}
	return fetched, nil
}

// do fetches into the job's folder.
func (j fetchJob) do(ctx context.Context) (registry.Done, error) {
	switch {
	case j.Git != nil:
		fetched, err := git.Fetch(ctx, j.Git.Remote, j.Git.Commit, j.Dir)
		return registry.Done{TransferBytes: fetched.TransferBytes, Files: fetched.Files, Bytes: fetched.Bytes}, err
	case j.Registry != nil:
		job := *j.Registry
		job.Dir = j.Dir
		return registry.Fetch(ctx, job)
	default:
		return registry.Done{}, fault.Failf(fault.ClassInvalid, "a job of a kind that is not known")
	}
}

// runFetch does a job, in a worker of its own.
func (c *Coordinator) runFetch(ctx context.Context, job fetchJob) (fetched registry.Done, err error) {
	p, err := worker.Start(c.command, workerLimits)
	if err != nil {
		return registry.Done{}, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	job.Timeout = fetchTimeout
	var failed *fetchFailure
	err = p.Do(ctx, fetchTimeout+5*time.Second, job, nil, func(kind worker.Kind, payload []byte) error {
		switch kind {
		case worker.Done:
			return json.Unmarshal(payload, &fetched)
		case worker.Failed:
			failed = &fetchFailure{}
			return json.Unmarshal(payload, failed)
		default:
			return worker.ErrFrame
		}
	})
	switch {
	case err != nil:
		return registry.Done{}, workerError(err)
	case failed != nil:
		return registry.Done{}, &fault.Error{Class: failed.Class, RetryAfter: failed.RetryAfter, Err: errors.New(failed.Message)}
	}
	return fetched, nil
}

// workerError sorts the end of a worker: a limit, or something else.
func workerError(err error) error {
	class := fault.ClassUnreachable
	switch {
	case errors.Is(err, worker.ErrMemory), errors.Is(err, worker.ErrCPU):
		class = fault.ClassTooLarge
	case errors.Is(err, worker.ErrDeadline):
		class = fault.ClassTimeout
	}
	return &fault.Error{Class: class, Err: fmt.Errorf("unpacking the source: %w", err)}
}
