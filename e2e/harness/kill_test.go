// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// left is what the victim says that it has started.
type left struct {
	PIDs []int
	Dirs []string
}

// victim starts a plane, and a program that leaves a grandchild in a session
// of its own, says so, and waits to be killed.
func victim(ctx context.Context) int {
	p, err := Start(ctx, Options{UnsafeNoFsync: true})
	if err == nil {
		var prog *Process
		prog, err = p.Run(ctx, Program{
			Name: "parent", Path: "sh",
			Args: []string{"-c", "setsid sleep 1000 & echo $! >grandchild; wait"},
		})
		if err == nil {
			err = tell(ctx, p, prog)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	select {}
}

func tell(ctx context.Context, p *Plane, prog *Process) error {
	l := left{
		PIDs: []int{p.sup.PID(), prog.PID()},
		Dirs: []string{p.sup.Dir(), p.Dir()},
	}
	for _, c := range []Component{Etcd, APIServer, ControllerManager, Scheduler, Kwok} {
		l.PIDs = append(l.PIDs, p.PID(c))
	}
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		b, err := os.ReadFile(filepath.Join(p.sup.Dir(), "grandchild"))
		if errors.Is(err, fs.ErrNotExist) || len(b) == 0 {
			return false, nil
		}
		var pid int
		if _, err := fmt.Sscan(string(b), &pid); err != nil {
			return false, fmt.Errorf("read grandchild: %w", err)
		}
		l.PIDs = append(l.PIDs, pid)
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("wait for grandchild: %w", err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(l); err != nil {
		return fmt.Errorf("tell: %w", err)
	}
	return nil
}

func TestKilledHarness(t *testing.T) {
	t.Run("a harness that is killed with SIGKILL leaves no process and no folder", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(os.Environ(), victimEnv+"=1")
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var l left
		if err := json.NewDecoder(out).Decode(&l); err != nil {
			t.Fatal(err)
		}
		if len(l.PIDs) != 8 {
			t.Fatalf("victim started %v, want 8 processes", l.PIDs)
		}
		for _, pid := range l.PIDs {
			if !alive(pid) {
				t.Errorf("process %d is not there before the kill", pid)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("victim ended with %v, want SIGKILL", err)
		}
		began := time.Now()
		err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
			return len(remains(l)) == 0, nil
		})
		if err != nil {
			t.Fatalf("left behind: %v", remains(l))
		}
		t.Logf("all gone %s after the kill", time.Since(began).Round(time.Millisecond))
	})
}

func remains(l left) []string {
	var all []string
	for _, pid := range l.PIDs {
		if alive(pid) {
			all = append(all, fmt.Sprintf("process %d", pid))
		}
	}
	for _, dir := range l.Dirs {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			all = append(all, dir)
		}
	}
	return all
}

// alive says whether a process exists and is not a zombie.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	var id int
	var name, state string
	if _, err := fmt.Sscan(string(b), &id, &name, &state); err != nil {
		return false
	}
	return state != "Z" && state != "X"
}
