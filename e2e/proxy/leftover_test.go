// SPDX-License-Identifier: Apache-2.0

//go:build debian

package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"kumodo.io/convoy/e2e/harness"
)

// victimEnv makes this program one that is killed: it makes two networks with a
// link and a program in each, says which they are, and waits.
const victimEnv = "CONVOY_PROXY_VICTIM"

func victim(ctx context.Context) error {
	sup, err := harness.NewSupervisor(ctx, "")
	if err != nil {
		return err
	}
	a, errA := newNetwork(ctx, "a")
	b, errB := newNetwork(ctx, "b")
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	if _, err := newLink(ctx, a, b); err != nil {
		return err
	}
	for _, n := range []*network{a, b} {
		p, err := n.start(ctx, sup, harness.Program{Name: n.name, Path: "sleep", Args: []string{"600"}})
		if err != nil {
			return err
		}
		name, err := os.Readlink(n.path())
		if err != nil {
			return err
		}
		// Forked is not yet inside.
		err = wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
			return inNetwork(p.PID(), name), nil
		})
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, name)
	}
	<-ctx.Done()
	return ctx.Err()
}

func inNetwork(pid int, name string) bool {
	is, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	return err == nil && is == name
}

// TestNothingIsLeftOfAKilledRun kills this program as a person or a CI system
// would, and looks for what is still in its networks.
func TestNothingIsLeftOfAKilledRun(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
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
	var names []string
	for lines := bufio.NewScanner(out); len(names) < 2 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "net:[") {
			names = append(names, lines.Text())
		}
	}
	if len(users(t, names)) != 2 {
		t.Fatalf("the networks %v are used by %v", names, users(t, names))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it ended by itself")
	}
	// Without users there is no network: it has no name.
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		return len(users(t, names)) == 0, nil
	})
	if err != nil {
		t.Errorf("still in the networks %v: %v", names, users(t, names))
	}
}

// users gives the processes in any of the networks.
func users(t *testing.T, names []string) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		name, err := os.Readlink(file)
		if err != nil {
			continue // it ended meanwhile
		}
		for _, want := range names {
			if name == want {
				found = append(found, file)
			}
		}
	}
	return found
}
