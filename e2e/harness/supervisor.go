// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"kumodo.io/convoy/e2e/harness/internal/message"
)

// Supervisor starts programs and ends them all when it is closed or when the
// calling process ends, however it ends.
type Supervisor struct {
	// Static after NewSupervisor.
	dir   string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan struct{} // closed when the supervisor's output has ended

	// writing orders the writes to stdin. It is not mu, so that events are
	// taken while a write waits for the supervisor.
	writing sync.Mutex

	// mu guards what follows.
	mu      sync.Mutex
	closed  bool
	err     error
	nextID  int64
	answers map[int64]chan message.Event
	running map[int]*Process
	exits   map[int]Exit // ends that were reported before their start was
}

// NewSupervisor starts a supervisor with a folder of its own below parent,
// which is the system's folder for temporary files when empty. The folder is
// removed when the supervisor ends.
func NewSupervisor(ctx context.Context, parent string) (*Supervisor, error) {
	bin, err := Binaries(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, "convoy-")
	if err != nil {
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	s, err := launch(bin, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.RemoveAtEnd(ctx, dir); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func launch(bin Bin, dir string) (*Supervisor, error) {
	log, err := os.Create(filepath.Join(dir, "supervisor.log"))
	if err != nil {
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	// No context: the supervisor must outlive every cancellation, it is what
	// cleans up. It ends with its standard input.
	cmd := exec.Command(bin.Path("supervisor")) //nolint:noctx // see above
	cmd.Stderr = log
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		var stdout io.ReadCloser
		if stdout, err = cmd.StdoutPipe(); err == nil {
			if err = cmd.Start(); err == nil {
				s := &Supervisor{
					dir: dir, cmd: cmd, stdin: stdin, ended: make(chan struct{}),
					answers: map[int64]chan message.Event{}, running: map[int]*Process{}, exits: map[int]Exit{},
				}
				go s.listen(stdout)
				return s, log.Close()
			}
		}
	}
	return nil, fmt.Errorf("start supervisor: %w", errors.Join(err, log.Close()))
}

// Dir is the folder of this supervisor, of mode 0700, removed when it ends.
func (s *Supervisor) Dir() string { return s.dir }

// PID is the process id of the supervisor itself.
func (s *Supervisor) PID() int { return s.cmd.Process.Pid }

// listen hands out answers and ends until the supervisor's output ends.
func (s *Supervisor) listen(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 0, 4<<10), message.MaxLine)
	var err error
	for lines.Scan() {
		var ev message.Event
		if err = json.Unmarshal(lines.Bytes(), &ev); err != nil {
			break
		}
		s.take(ev)
	}
	if err = errors.Join(err, lines.Err()); err == nil {
		err = ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	for id, c := range s.answers {
		delete(s.answers, id)
		close(c)
	}
	for pid, p := range s.running {
		delete(s.running, pid)
		p.finish(Exit{Name: p.name, PID: pid, Code: -1, Signal: int(syscall.SIGKILL)})
	}
	close(s.ended)
}

func (s *Supervisor) take(ev message.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ev.Exit != nil {
		exit := Exit(*ev.Exit)
		if p, ok := s.running[exit.PID]; ok {
			delete(s.running, exit.PID)
			p.finish(exit)
		} else {
			s.exits[exit.PID] = exit
		}
		return
	}
	if c, ok := s.answers[ev.ID]; ok {
		delete(s.answers, ev.ID)
		c <- ev
	}
}

// call sends one order and waits for its answer.
func (s *Supervisor) call(ctx context.Context, req message.Request) (message.Event, error) {
	answer := make(chan message.Event, 1)
	s.mu.Lock()
	if s.closed || s.err != nil {
		s.mu.Unlock()
		return message.Event{}, ErrClosed
	}
	s.nextID++
	req.ID = s.nextID
	s.answers[req.ID] = answer
	s.mu.Unlock()
	if err := s.send(req); err != nil {
		s.mu.Lock()
		delete(s.answers, req.ID)
		s.mu.Unlock()
		return message.Event{}, fmt.Errorf("%s: %w", req.Op, err)
	}
	select {
	case ev, ok := <-answer:
		if !ok {
			return message.Event{}, ErrClosed
		}
		if ev.Error != "" {
			return ev, fmt.Errorf("%s: %s", req.Op, ev.Error)
		}
		return ev, nil
	case <-ctx.Done():
		s.mu.Lock()
		delete(s.answers, req.ID)
		s.mu.Unlock()
		return message.Event{}, fmt.Errorf("%s: %w", req.Op, context.Cause(ctx))
	}
}

func (s *Supervisor) send(req message.Request) error {
	b, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("encode order: %w", err)
	}
	if len(b) >= message.MaxLine {
		return fmt.Errorf("order of %d bytes is too long", len(b))
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if _, err := s.stdin.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("send order: %w", err)
	}
	return nil
}

// RemoveAtEnd names a folder that the supervisor removes when it ends.
func (s *Supervisor) RemoveAtEnd(ctx context.Context, dir string) error {
	_, err := s.call(ctx, message.Request{Op: message.OpRemove, Path: dir})
	return err
}

// Detach leaves everything running when this process ends. SIGTERM to PID
// then ends it. The supervisor must not be used afterwards.
func (s *Supervisor) Detach(ctx context.Context) error {
	_, err := s.call(ctx, message.Request{Op: message.OpDetach})
	return err
}

// Close kills every program, removes the folders and waits for both. Closing
// twice is allowed.
func (s *Supervisor) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		<-s.ended
		return nil
	}
	s.closed = true
	err := s.stdin.Close()
	s.mu.Unlock()

	late := time.AfterFunc(closeTimeout, func() {
		// It hangs. Its children have the parent-death signal.
		if kerr := s.cmd.Process.Kill(); kerr != nil && !errors.Is(kerr, os.ErrProcessDone) {
			fmt.Fprintln(os.Stderr, "harness: kill supervisor:", kerr)
		}
	})
	defer late.Stop()
	<-s.ended
	if err = errors.Join(err, s.cmd.Wait()); err != nil {
		return fmt.Errorf("close supervisor: %w", err)
	}
	return nil
}
