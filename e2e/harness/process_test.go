// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestSupervisor(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := NewSupervisor(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	start := func(t *testing.T, name, script string) *Process {
		t.Helper()
		p, err := s.Start(ctx, Program{Name: name, Path: "sh", Args: []string{"-c", script}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}

	t.Run("a program's end tells its exit code, and its log holds what it said", func(t *testing.T) {
		p := start(t, "fails", "echo said; echo also >&2; exit 7")
		exit, err := p.Wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if exit.Code != 7 || exit.Signal != 0 || exit.MaxRSS == 0 {
			t.Errorf("exit is %+v", exit)
		}
		if got := tail(p.Log()); got != "said\nalso" {
			t.Errorf("log is %q", got)
		}
		if err := p.Signal(ctx, syscall.SIGTERM); !errors.Is(err, ErrNotRunning) {
			t.Errorf("a signal to it gives %v, want %v", err, ErrNotRunning)
		}
	})
	t.Run("a killed program tells the signal and can be started again", func(t *testing.T) {
		for range 2 {
			p := start(t, "killed", "sleep 1000")
			if err := p.Kill9(ctx); err != nil {
				t.Fatal(err)
			}
			if exit, err := p.Wait(ctx); err != nil || exit.Signal != int(syscall.SIGKILL) {
				t.Errorf("exit is %+v (%v)", exit, err)
			}
		}
	})
	t.Run("a program that does not exist is an error", func(t *testing.T) {
		if _, err := s.Start(ctx, Program{Name: "none", Path: "/does/not/exist"}); err == nil {
			t.Error("no error")
		}
	})
	t.Run("a supervisor that is killed takes its programs with it, and closing says so", func(t *testing.T) {
		p := start(t, "orphan", "exec sleep 1000")
		if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		for alive(p.PID()) && ctx.Err() == nil {
			if err := pause(ctx, readyPoll); err != nil {
				t.Fatal("program is still there")
			}
		}
		if _, err := s.Start(ctx, Program{Name: "late", Path: "true"}); !errors.Is(err, ErrClosed) {
			t.Errorf("starting a program gives %v, want %v", err, ErrClosed)
		}
		if err := s.Close(); err == nil {
			t.Error("closing gives no error")
		}
	})
	t.Run("closing removes the folder", func(t *testing.T) {
		s, err := NewSupervisor(ctx, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(s.Dir()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("folder: %v", err)
		}
	})
}

func TestFreePort(t *testing.T) {
	t.Run("no port is given twice", func(t *testing.T) {
		seen := map[int]bool{}
		for range 200 {
			port, err := FreePort(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if seen[port] {
				t.Fatalf("port %d was given twice", port)
			}
			seen[port] = true
		}
	})
}
