// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kumodo.io/convoy/e2e/harness"
)

const (
	// keepVerb is how "up" starts the process that holds the clusters.
	keepVerb = "keep"
	// folder of the state, below the root of the repository.
	folder = ".demo"
	// lockFile is locked for as long as the keeper lives; it has its pid.
	lockFile = "keeper.lock"
	// doneFile is there when the story came to its end.
	doneFile = "done"
	// endTimeout is how long the keeper may take to end three clusters.
	endTimeout = time.Minute
	endPoll    = 50 * time.Millisecond
	// maxMessage is how much of an error is told, in bytes; the log has all of it.
	maxMessage = 800
)

var (
	errRunning = errors.New("the demo is running already: make demo-down ends it")
	errStory   = errors.New("the demo did not come to its end")
)

// state is the folder that all of the demo's state is in.
func state() (string, error) {
	root, err := harness.RepoRoot()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	return filepath.Join(root, folder), nil
}

// up starts a keeper in a session of its own, which tells the story on a pipe, and
// leaves it when the story is told.
func up(ctx context.Context, out io.Writer) error {
	dir, err := state()
	if err != nil {
		return err
	}
	if _, running := keeper(dir); running {
		return errRunning
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing what an earlier demo left: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of the demo: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	log, err := os.Create(filepath.Join(dir, "keeper.log"))
	if err != nil {
		return fmt.Errorf("making the log: %w", err)
	}
	defer log.Close()
	// Not bound to ctx: it outlives this process, and is asked to end by signal.
	command := exec.Command(self, keepVerb) //nolint:noctx // see above
	command.Stderr = log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	story, err := command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("making the pipe: %w", err)
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting the keeper: %w", err)
	}
	stop := context.AfterFunc(ctx, func() {
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			fmt.Fprintln(out, "ending the keeper:", err)
		}
	})
	defer stop()
	if _, err := io.Copy(out, story); err != nil {
		return fmt.Errorf("reading what the keeper tells: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, doneFile)); err == nil {
		return nil
	}
	return errors.Join(errStory, command.Wait())
}

// down asks the keeper to end and waits until it has.
func down(ctx context.Context, out io.Writer) error {
	dir, err := state()
	if err != nil {
		return err
	}
	pid, running := keeper(dir)
	if running {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			return fmt.Errorf("ending the keeper, process %d: %w", pid, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	tick := time.NewTicker(endPoll)
	defer tick.Stop()
	for running {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the keeper, process %d, does not end: %w", pid, ctx.Err())
		case <-tick.C:
			_, running = keeper(dir)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the folder of the demo: %w", err)
	}
	fmt.Fprintln(out, "The demo is gone: its clusters, programs and files.")
	return nil
}

// keeper says whether a keeper lives, by the lock that it holds, and which
// process it is.
func keeper(dir string) (pid int, running bool) {
	file, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return 0, false
	}
	defer file.Close()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB); err == nil {
		return 0, false
	}
	text, err := io.ReadAll(io.LimitReader(file, 32))
	if err != nil {
		return 0, false
	}
	pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
	return pid, err == nil
}

// lock makes this process the keeper of the folder.
func lock(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the demo: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(errRunning, err, file.Close())
	}
	if _, err := fmt.Fprintln(file, os.Getpid()); err != nil {
		return nil, errors.Join(fmt.Errorf("locking the demo: %w", err), file.Close())
	}
	return file, nil
}

// keep tells the story on its standard output, then holds the clusters until it
// is told to end.
func keep(ctx context.Context) error {
	dir, err := state()
	if err != nil {
		return err
	}
	held, err := lock(dir)
	if err != nil {
		return err
	}
	defer held.Close()
	stage := &stage{dir: dir}
	err = stage.tell(ctx, newVoice(os.Stdout))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, doneFile), nil, 0o600)
	}
	if err != nil {
		fmt.Fprintf(os.Stdout, "\nThe demo ends here: %.*s\n", maxMessage, err.Error())
		if kept, logsErr := stage.keepLogs(); logsErr == nil && len(kept) > 0 {
			fmt.Fprintf(os.Stdout, "Logs: %s\n", strings.Join(kept, " "))
		}
		return errors.Join(err, stage.end())
	}
	// The reader of the pipe leaves at its end.
	if err := os.Stdout.Close(); err != nil {
		return errors.Join(fmt.Errorf("ending the story: %w", err), stage.end())
	}
	<-ctx.Done()
	return stage.end()
}

// keepLogs copies the logs of hub and agents to the state folder, since those of
// the clusters go with them.
func (s *stage) keepLogs() ([]string, error) {
	var kept []string
	for name, path := range s.logs() {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return kept, fmt.Errorf("keeping the log of %s: %w", name, err)
		}
		target := filepath.Join(s.dir, name+".log")
		if err := os.WriteFile(target, text, 0o600); err != nil {
			return kept, fmt.Errorf("keeping the log of %s: %w", name, err)
		}
		kept = append(kept, target)
	}
	return kept, nil
}
