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

	"kumodo.io/convoy/hub/source/git"
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

// fetchJob goes to a fetch worker. It has credentials in it.
type fetchJob struct {
	Remote  git.Remote    `json:"remote"`
	Commit  string        `json:"commit"`
	Dir     string        `json:"dir"`
	Timeout time.Duration `json:"timeout"`
}

// fetchFailure comes back when it went wrong.
type fetchFailure struct {
	Class      git.Class     `json:"class"`
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
		return nil, fetchFailure{Class: git.ClassInvalid, Message: "a job that cannot be read"}
	}
	ctx, cancel := context.WithTimeout(context.Background(), job.Timeout)
	defer cancel()
	fetched, err := git.Fetch(ctx, job.Remote, job.Commit, job.Dir)
	if err != nil {
		failed := fetchFailure{Class: git.ClassOf(err), Message: err.Error()}
		var own *git.Error
		if errors.As(err, &own) {
			failed.RetryAfter, failed.Message = own.RetryAfter, own.Error()
		}
		return nil, failed
	}
	return fetched, nil
}

// runFetch fetches one commit into dir, in a worker of its own.
func (c *Coordinator) runFetch(ctx context.Context, remote git.Remote, commit, dir string) (fetched git.Fetched, err error) {
	p, err := worker.Start(c.command, workerLimits)
	if err != nil {
		return git.Fetched{}, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	job := fetchJob{Remote: remote, Commit: commit, Dir: dir, Timeout: fetchTimeout}
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
		return git.Fetched{}, workerError(err)
	case failed != nil:
		return git.Fetched{}, &git.Error{Class: failed.Class, RetryAfter: failed.RetryAfter, Err: errors.New(failed.Message)}
	}
	return fetched, nil
}

// workerError sorts the end of a worker: a limit, or something else.
func workerError(err error) error {
	class := git.ClassUnreachable
	switch {
	case errors.Is(err, worker.ErrMemory), errors.Is(err, worker.ErrCPU):
		class = git.ClassTooLarge
	case errors.Is(err, worker.ErrDeadline):
		class = git.ClassTimeout
	}
	return &git.Error{Class: class, Err: fmt.Errorf("unpacking the repository: %w", err)}
}
