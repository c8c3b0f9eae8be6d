// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// Call is one job inside a worker.
type Call struct {
	// Job is the job's JSON.
	Job []byte
	// Data is what came with it.
	Data io.Reader
	// Out carries the data of the answer.
	Out *bufio.Writer
	out io.Writer
}

// At tells the parent what is about to be done, for its error if the worker dies of it.
func (c *Call) At(what string) error {
	return errors.Join(c.Out.Flush(), WriteFrame(c.out, At, []byte(what)))
}

// Serve answers jobs until in ends. handle gives either the value of the Done
// frame or that of the Failed frame. An error ends the worker: something is wrong
// with the pipes, not with the job.
func Serve(in io.Reader, out io.Writer, limits Limits, handle func(*Call) (done, failed any)) error {
	frames := NewFrameReader(in)
	for {
		kind, payload, err := frames.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if kind != Job {
			return fmt.Errorf("%w: kind %q instead of a job", ErrFrame, kind)
		}
		if limits.JobCPU > 0 {
			if err := BeginJob(limits.JobCPU); err != nil {
				return err
			}
		}
		call := &Call{Job: append([]byte{}, payload...), Data: DataReader(frames), Out: DataWriter(out), out: out}
		done, failed := handle(call)
		if _, err := io.Copy(io.Discard, call.Data); err != nil {
			return err
		}
		if err := call.Out.Flush(); err != nil {
			return err
		}
		if failed != nil {
			err = WriteJSON(out, Failed, failed)
		} else {
			err = WriteJSON(out, Done, done)
		}
		if err != nil {
			return err
		}
	}
}
