// SPDX-License-Identifier: Apache-2.0

// Command supervisor holds the child processes of the test harness. It lives
// in a process group of its own, takes orders as JSON lines on its standard
// input, and when that ends, for whatever reason, it kills all it started,
// their descendants too, removes the folders it was told of, and ends. It
// stands outside the flow: it is test machinery only.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"kumodo.io/convoy/e2e/harness/internal/message"
)

// podInit is the first argument of the form in which the supervisor starts
// itself again as first process of a pod's namespaces.
const podInit = "pod-init"

func main() {
	if len(os.Args) > 1 && os.Args[1] == podInit {
		err := enterPod()
		fmt.Fprintln(os.Stderr, "pod-init:", err)
		os.Exit(127)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "supervisor:", err)
		os.Exit(1)
	}
}

func run() error {
	// Descendants that lose their parent come to us, so that the end of a
	// program never hides what it started.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)

	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)

	s := &supervisor{out: bufio.NewWriter(os.Stdout), running: map[int]string{}}
	requests := make(chan message.Request)
	readErr := make(chan error, 1)
	go func() { readErr <- read(os.Stdin, requests) }()

	// All forks happen on one thread that lives as long as this process:
	// the parent-death signal follows the thread. It is the second line of
	// defence only, for the case that this very process is killed.
	runtime.LockOSThread()
	detached := false
	for {
		select {
		case <-term:
			return s.end()
		case <-ended:
			s.reap()
		case req := <-requests:
			if req.Op == message.OpDetach {
				detached = true
			}
			s.handle(req)
		case err := <-readErr:
			if err != nil {
				fmt.Fprintln(os.Stderr, "supervisor: read:", err)
			}
			if detached {
				readErr = nil
				continue
			}
			return s.end()
		}
	}
}

// read hands the lines of r to requests until r ends. The end itself is no
// error.
func read(r io.Reader, requests chan<- message.Request) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), message.MaxLine)
	for lines.Scan() {
		var req message.Request
		if err := json.Unmarshal(lines.Bytes(), &req); err != nil {
			return fmt.Errorf("decode order: %w", err)
		}
		requests <- req
	}
	return lines.Err()
}

// supervisor is owned by the main goroutine. Since starting, signalling and
// reaping happen there and nowhere else, a number of a process that has been
// reaped, and may have been given away again, is never signalled.
type supervisor struct {
	folders []string
	running map[int]string
	out     *bufio.Writer
	// deaf is set when the reader of out is gone.
	deaf bool
}

func (s *supervisor) handle(req message.Request) {
	ev := message.Event{ID: req.ID}
	var err error
	switch req.Op {
	case message.OpStart:
		ev.PID, err = s.start(req.Start)
	case message.OpSignal:
		err = s.signal(req.PID, syscall.Signal(req.Signal))
	case message.OpRemove:
		s.folders = append(s.folders, req.Path)
	case message.OpDetach:
	default:
		err = fmt.Errorf("unknown order %q", req.Op)
	}
	if err != nil {
		ev.Error = err.Error()
	}
	s.say(ev)
}

// signal reaches only what was started here and has not been reaped.
func (s *supervisor) signal(pid int, sig syscall.Signal) error {
	if _, ok := s.running[pid]; !ok {
		return fmt.Errorf("signal %d: no such child", pid)
	}
	if err := syscall.Kill(pid, sig); err != nil {
		return fmt.Errorf("signal %d: %w", pid, err)
	}
	return nil
}

// say writes one event. When the reader is gone there is nobody to tell.
func (s *supervisor) say(ev message.Event) {
	if s.deaf {
		return
	}
	b, err := json.Marshal(ev)
	if err == nil {
		_, err = s.out.Write(append(b, '\n'))
	}
	if err == nil {
		err = s.out.Flush()
	}
	if err != nil {
		s.deaf = true
		fmt.Fprintln(os.Stderr, "supervisor: write:", err)
	}
}

// end kills everything below this process and removes the folders.
func (s *supervisor) end() error {
	if err := killDescendants(); err != nil {
		return err
	}
	var errs []error
	for _, f := range s.folders {
		if err := os.RemoveAll(f); err != nil {
			errs = append(errs, fmt.Errorf("remove folder: %w", err))
		}
	}
	return errors.Join(errs...)
}
