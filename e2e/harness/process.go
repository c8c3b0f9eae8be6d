// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"kumodo.io/convoy/e2e/harness/internal/message"
)

// Exit says how a program ended.
type Exit message.Exit

func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("signal %d, %s", e.Signal, syscall.Signal(e.Signal))
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// Program says how to start a program.
type Program struct {
	// Name is for messages and for the name of the log.
	Name string
	// Path is the program, looked up in PATH when it has no slash.
	Path string
	Args []string
	// Env is the whole environment; nil means that of this process.
	Env []string
	// Dir is the working directory, the supervisor's folder when empty.
	Dir string
	// Log is the file that output is appended to; by default NAME.log in the
	// supervisor's folder.
	Log string
}

// Process is one start of a program. It is safe for concurrent use.
type Process struct {
	// Static after start.
	sup  *Supervisor
	name string
	pid  int
	log  string

	done chan struct{}
	once sync.Once
	exit Exit // written before done is closed
}

// Start starts a program and returns when it is forked.
func (s *Supervisor) Start(ctx context.Context, p Program) (*Process, error) {
	env := p.Env
	if env == nil {
		env = os.Environ()
	}
	return s.start(ctx, &message.Start{Name: p.Name, Path: p.Path, Args: p.Args, Env: env, Dir: p.Dir, Log: p.Log})
}

func (s *Supervisor) start(ctx context.Context, st *message.Start) (*Process, error) {
	if st.Dir == "" {
		st.Dir = s.dir
	}
	if st.Log == "" {
		st.Log = filepath.Join(s.dir, st.Name+".log")
	}
	// Whether it was started is known only from the answer, so the wait for
	// it does not end with ctx: it takes as long as a fork.
	ev, err := s.call(context.WithoutCancel(ctx), message.Request{Op: message.OpStart, Start: st})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", st.Name, err)
	}
	p := &Process{sup: s, name: st.Name, pid: ev.PID, log: st.Log, done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if exit, ok := s.exits[p.pid]; ok {
		delete(s.exits, p.pid)
		p.finish(exit)
		return p, nil
	}
	if s.err != nil {
		return nil, fmt.Errorf("start %s: %w", st.Name, s.err)
	}
	s.running[p.pid] = p
	return p, nil
}

func (p *Process) finish(e Exit) {
	p.once.Do(func() {
		p.exit = e
		close(p.done)
	})
}

// PID is the process id, as this machine counts.
func (p *Process) PID() int { return p.pid }

// Name is the program's name.
func (p *Process) Name() string { return p.name }

// Log is the path of the log.
func (p *Process) Log() string { return p.log }

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running says whether the program has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Wait waits for the end of the program. The error is that of ctx.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.done:
		return p.exit, nil
	case <-ctx.Done():
		return Exit{}, fmt.Errorf("wait for %s: %w", p.name, context.Cause(ctx))
	}
}

// Signal sends a signal. A program that has ended gives ErrNotRunning.
func (p *Process) Signal(ctx context.Context, sig syscall.Signal) error {
	if !p.Running() {
		return fmt.Errorf("signal %s: %w", p.name, ErrNotRunning)
	}
	_, err := p.sup.call(ctx, message.Request{Op: message.OpSignal, PID: p.pid, Signal: int(sig)})
	if err != nil && !p.Running() {
		return fmt.Errorf("signal %s: %w", p.name, ErrNotRunning)
	}
	return err
}

// Kill9 kills the program and waits for its end.
func (p *Process) Kill9(ctx context.Context) error {
	if err := p.Signal(ctx, syscall.SIGKILL); err != nil {
		return err
	}
	_, err := p.Wait(ctx)
	return err
}

// Stop asks the program to end, kills it after a grace of 15 s and waits for
// its end. A program that has ended already is no error.
func (p *Process) Stop(ctx context.Context) (Exit, error) {
	if err := p.Signal(ctx, syscall.SIGTERM); err != nil {
		if errors.Is(err, ErrNotRunning) {
			return p.Wait(ctx)
		}
		return Exit{}, err
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-p.done:
	case <-ctx.Done():
		return Exit{}, fmt.Errorf("stop %s: %w", p.name, context.Cause(ctx))
	case <-grace.C:
		if err := p.Signal(ctx, syscall.SIGKILL); err != nil && !errors.Is(err, ErrNotRunning) {
			return Exit{}, err
		}
	}
	return p.Wait(ctx)
}

// ended gives the error for a program that should be running.
func (p *Process) ended() error {
	return &ExitError{Name: p.name, Exit: p.exit, Log: p.log, Tail: tail(p.log)}
}

// tail gives the last lines of a log, for an error.
func tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer func() {
		// Only read from: there is nothing that closing could lose.
		_ = f.Close()
	}()
	if info, err := f.Stat(); err == nil && info.Size() > maxLogTail {
		if _, err := f.Seek(-maxLogTail, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	b, err := io.ReadAll(io.LimitReader(f, maxLogTail))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}
