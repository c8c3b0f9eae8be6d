// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Command is the program that is the worker. Its last argument is added by Start:
// the limits.
type Command struct {
	Path string
	Args []string
}

// Self is the running program, started with other arguments. It goes by the
// kernel's link, so that a replaced binary changes nothing.
func Self(args ...string) Command { return Command{Path: "/proc/self/exe", Args: args} }

// Process is a worker as its parent sees it. It does one job at a time.
type Process struct {
	cmd    *exec.Cmd
	limits Limits
	dir    string
	stdin  io.WriteCloser
	stdout io.Closer
	frames *FrameReader
	stderr *head
	ended  chan struct{}
	state  error // how it ended; valid once ended is closed
	kill   sync.Once
	killed atomic.Pointer[error] // why the parent killed it
}

// Start starts a worker. Stop must be called.
func Start(command Command, limits Limits) (*Process, error) {
	text, err := json.Marshal(limits)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "convoy-worker-")
	if err != nil {
		return nil, fmt.Errorf("folder of a worker: %w", err)
	}
	// A worker outlives the job that it was started for, so it has no context: its
	// life ends with Stop.
	cmd := exec.Command(command.Path, append(append([]string{}, command.Args...), string(text))...) //nolint:noctx // see above
	cmd.Env = []string{}
	cmd.Dir = dir
	p := &Process{cmd: cmd, limits: limits, dir: dir, stderr: &head{}, ended: make(chan struct{})}
	cmd.Stderr = p.stderr
	// A group of its own: a person's Ctrl-C goes to the hub, which ends its workers.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, errIn := cmd.StdinPipe()
	// A pipe of our own, since Wait would close StdoutPipe while a job reads it.
	out, in, errOut := os.Pipe()
	if err := errors.Join(errIn, errOut); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	cmd.Stdout = in
	err = cmd.Start()
	closeErr := in.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a worker: %w", err), closeErr, out.Close(), os.RemoveAll(dir))
	}
	p.stdin, p.stdout, p.frames = stdin, out, NewFrameReader(out)
	go func() { // ends with the process; Stop waits for it
		p.state = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// PID of the worker.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop ends the worker and waits for its end.
func (p *Process) Stop() error {
	p.end(nil)
	<-p.ended
	return errors.Join(p.stdout.Close(), os.RemoveAll(p.dir))
}

// end kills the worker, for the first reason given.
func (p *Process) end(reason error) {
	p.kill.Do(func() {
		if reason != nil {
			p.killed.Store(&reason)
		}
		// It may have ended by itself: then there is nothing to kill.
		_ = p.cmd.Process.Kill()
		_ = p.stdin.Close()
	})
}

// Do sends a job and its data to the worker and hands the frames of the answer to
// take until one is Done or Failed. ctx ends the worker: a job that is given up
// cannot be stopped in any other way. After an error the worker is of no use any
// more and has to be stopped.
//
// wall is the job's deadline. The error says why the worker ended, and what it
// last said it was about to do.
func (p *Process) Do(ctx context.Context, wall time.Duration, job any, data io.Reader, take func(Kind, []byte) error) error {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { p.watch(ctx, wall, done) })
	var send sync.WaitGroup
	var sendErr error
	send.Go(func() { sendErr = p.send(job, data) })
	at, err := p.receive(take)
	if err != nil {
		p.end(err)
	}
	// Under watch: a worker that answers without reading its job to the end would
	// hold the sender for ever.
	send.Wait()
	close(done)
	watch.Wait()
	if err == nil && sendErr != nil {
		err = io.EOF
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, ErrFrame) {
		p.end(err)
		<-p.ended
		err = p.reason()
		if at != "" {
			err = fmt.Errorf("%s: %w", at, err)
		}
	}
	// A source that broke while it was sent is the cause, not the worker that saw
	// its input end.
	var source *sourceError
	if errors.As(sendErr, &source) {
		return source.err
	}
	return err
}

// reason says why the worker ended.
func (p *Process) reason() error {
	if killed := p.killed.Load(); killed != nil && !errors.Is(*killed, io.EOF) && !errors.Is(*killed, ErrFrame) {
		return *killed
	}
	var exit *exec.ExitError
	if errors.As(p.state, &exit) {
		status, ok := exit.Sys().(syscall.WaitStatus)
		if exit.ExitCode() == exitCPU || ok && status.Signaled() && status.Signal() == syscall.SIGXCPU {
			return passed(ErrCPU, p.limits.JobCPU)
		}
		return died(exit, p.stderr.firstLine())
	}
	return ErrDied
}

// sourceError is an error of the data that a job is made of.
type sourceError struct{ err error }

func (s *sourceError) Error() string { return s.err.Error() }
func (s *sourceError) Unwrap() error { return s.err }

type sourceReader struct{ r io.Reader }

func (s sourceReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &sourceError{err}
	}
	return n, err
}

func (p *Process) send(job any, data io.Reader) error {
	out := DataWriter(p.stdin)
	if err := WriteJSON(p.stdin, Job, job); err != nil {
		return err
	}
	if data != nil {
		if _, err := io.Copy(out, sourceReader{data}); err != nil {
			var source *sourceError
			if errors.As(err, &source) {
				p.end(source.err)
			}
			return err
		}
	}
	return errors.Join(out.Flush(), WriteFrame(p.stdin, End, nil))
}

func (p *Process) receive(take func(Kind, []byte) error) (at string, err error) {
	for {
		kind, payload, err := p.frames.Next()
		if err != nil {
			return at, err
		}
		if kind == At {
			at = string(payload)
			continue
		}
		if err := take(kind, payload); err != nil {
			return at, err
		}
		if kind == Done || kind == Failed {
			return at, nil
		}
	}
}

// watch kills the worker when the job may not go on.
func (p *Process) watch(ctx context.Context, wall time.Duration, done <-chan struct{}) {
	deadline := time.NewTimer(wall)
	defer deadline.Stop()
	look := time.NewTicker(watchEvery)
	defer look.Stop()
	for {
		select {
		case <-done:
			return
		case <-p.ended:
			return
		case <-ctx.Done():
			p.end(context.Cause(ctx))
			return
		case <-deadline.C:
			p.end(passed(ErrDeadline, wall))
			return
		case <-look.C:
			resident, err := statm(p.PID(), 1)
			if err == nil && p.limits.ResidentBytes > 0 && resident > p.limits.ResidentBytes {
				p.end(passed(ErrMemory, p.limits.ResidentBytes))
				return
			}
			// An error means that the process is gone, which ended tells.
		}
	}
}

// head keeps the beginning of what is written to it.
type head struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept.Write(p[:min(len(p), maxStderrBytes-h.kept.Len())])
	return len(p), nil
}

func (h *head) firstLine() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	line, _, _ := strings.Cut(strings.TrimSpace(h.kept.String()), "\n")
	return line
}

// Alive reports whether the process is still there.
func (p *Process) Alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }
