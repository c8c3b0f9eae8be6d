// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"kumodo.io/convoy/e2e/harness"
)

func TestKeep(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	name := fmt.Sprintf("keep-test-%d", os.Getpid())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), upEnv+"="+name)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	state, err := Get(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := Down(context.WithoutCancel(ctx), name); err != nil && !errors.Is(err, ErrUnknown) {
			t.Error(err)
		}
	}()

	t.Run("a plane answers after the program that started it has ended", func(t *testing.T) {
		bin, err := harness.Binaries(ctx)
		if err != nil {
			t.Fatal(err)
		}
		get := exec.CommandContext(ctx, bin.Path("kubectl"), "--kubeconfig", state.Kubeconfig, "get", "namespaces")
		if out, err := harness.RunCommand(get); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	})
	t.Run("its name is taken", func(t *testing.T) {
		if _, err := Up(ctx, name, harness.Options{}); !errors.Is(err, ErrExists) {
			t.Errorf("starting it again gives %v, want %v", err, ErrExists)
		}
	})
	t.Run("it is listed as running", func(t *testing.T) {
		all, err := List()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if s.Name == name && s.Running() {
				return
			}
		}
		t.Errorf("not in %v", all)
	})
	t.Run("it ends by name and leaves nothing", func(t *testing.T) {
		if err := Down(ctx, name); err != nil {
			t.Fatal(err)
		}
		if state.Running() {
			t.Error("its supervisor is still there")
		}
		if _, err := os.Stat(filepath.Dir(filepath.Dir(state.Dir))); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("its folder is still there: %v", err)
		}
		if err := Down(ctx, name); !errors.Is(err, ErrUnknown) {
			t.Errorf("ending it again gives %v, want %v", err, ErrUnknown)
		}
	})
	t.Run("a name with a path in it is refused", func(t *testing.T) {
		if err := Down(ctx, "../x"); !errors.Is(err, ErrName) {
			t.Errorf("error %v, want %v", err, ErrName)
		}
	})
}
