// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestABrokenFileHoldsUpNoOtherAndFailsTheRunAtItsEnd(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.yaml", "# id: XX-01\n---\nstep: a\ndo: event\nwhat: nothing\n")
	broken := write("broken.yaml", "# id: XX-02\n---\nstep: a\ndo: nonsense\n")
	if err := run(t.Context(), []string{"-check", good}); err != nil {
		t.Error(err)
	}
	err := run(t.Context(), []string{"-check", broken, good, filepath.Join(dir, "none.yaml")})
	if err == nil || !strings.Contains(err.Error(), "2 of 3 files could not be played") || !strings.Contains(err.Error(), "broken.yaml:3") {
		t.Errorf("got %v", err)
	}
}
