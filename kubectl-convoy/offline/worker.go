// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// WorkerName is the first argument of the process that a render is made in.
const WorkerName = "render-worker"

// Exit codes of a worker. Go's runtime ends a process that dies with 2, so those of a
// worker that came to its end are others: exitDone plus what the command ends with.
const (
	exitCPU    = 64
	exitMemory = 65
	exitUnfit  = 66 // it was started wrongly, or could not confine itself
	exitDone   = 80
)

// Answer of a worker that came to its end.
type Answer struct {
	// Out is for standard output, Said for standard error.
	Out, Said []byte
	// Code to exit with.
	Code int
}

// Work has a job done by a process of its own, the running program with WorkerName as
// its first argument, under limits. It gives what the process printed, or why it ended
// before its end, in one line: ErrCPU, ErrDeadline, ErrMemory, ErrDeep, ErrOutput,
// ErrDied. The end of ctx ends the process at once; the error is ctx's cause.
func Work(ctx context.Context, limits Limits, job any) (*Answer, error) {
	given, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	arg, err := json.Marshal(limits)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start the render: %w", err)
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if limits.Wall > 0 {
		deadline := time.AfterFunc(limits.Wall, func() { cancel(passed(ErrDeadline, limits.Wall)) })
		defer deadline.Stop()
	}
	out := &bounded{most: int(limits.OutBytes), full: func() { cancel(fmt.Errorf("%w: more than %d MiB", ErrOutput, limits.OutBytes>>20)) }}
	said := &bounded{most: maxStderrBytes}
	cmd := exec.CommandContext(within, self, WorkerName, string(arg))
	cmd.Env = []string{} // nothing of the caller's, as its tokens, is where a template runs
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(given), out, said
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return nil, errors.Join(fmt.Errorf("start the render: %w", err), context.Cause(ctx))
	}
	switch code := cmd.ProcessState.ExitCode(); {
	case out.overflowed, code < exitDone && within.Err() != nil:
		return nil, context.Cause(within)
	case code < exitDone:
		return nil, limits.died(cmd.ProcessState, said.kept.String())
	default:
		return &Answer{Out: out.kept.Bytes(), Said: said.kept.Bytes(), Code: code - exitDone}, nil
	}
}

// died says why a worker ended.
func (l Limits) died(state *os.ProcessState, said string) error {
	words := lastWords(said)
	code := state.ExitCode()
	switch killed := code < 0; {
	case code == exitCPU, killed && l.CPU > 0 && state.UserTime()+state.SystemTime() >= l.CPU:
		return passed(ErrCPU, l.CPU)
	case code == exitMemory, noMemory(words):
		return fmt.Errorf("%w: more than %d MiB", ErrMemory, l.ResidentBytes>>20)
	case strings.Contains(words, "stack overflow"):
		return ErrDeep
	case code == exitUnfit:
		return fmt.Errorf("%w: %s", ErrDied, firstLine(said))
	case words == "":
		return fmt.Errorf("%w (%s)", ErrDied, state)
	}
	return fmt.Errorf("%w (%s)", ErrDied, words)
}

// lastWords are those of Go's runtime: there is no other way to learn of what it died.
func lastWords(said string) string {
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "panic: ") {
			return firstLine(line)
		}
	}
	return ""
}

func noMemory(words string) bool {
	for _, one := range []string{"out of memory", "cannot allocate memory", "newosproc"} {
		if strings.Contains(words, one) {
			return true
		}
	}
	return false
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line[:min(len(line), maxReasonBytes)]
}

func passed(limit error, of time.Duration) error { return fmt.Errorf("%w: more than %s", limit, of) }

// bounded keeps the beginning of what is written to it.
type bounded struct {
	kept       bytes.Buffer
	most       int
	full       func()
	overflowed bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.most - b.kept.Len()
	b.kept.Write(p[:min(len(p), room)])
	if len(p) > room && b.full != nil && !b.overflowed {
		b.overflowed = true
		b.full()
	}
	return len(p), nil
}

// Serve is the worker: it puts its process under the limits of its arguments, those after
// WorkerName, reads a job from in, and gives the code to exit with, which is that of
// handle in the form that Work reads.
func Serve[Job any](args []string, in io.Reader, errOut io.Writer, handle func(Job) int) int {
	// A person's Ctrl-C goes to both processes; it is the parent that tells of it and
	// ends this one.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	var job Job
	err := confine(args)
	if err == nil {
		err = json.NewDecoder(in).Decode(&job)
	}
	if err != nil {
		fmt.Fprintln(errOut, err)
		return exitUnfit
	}
	return exitDone + handle(job)
}
