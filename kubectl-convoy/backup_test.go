// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestABackupSaysAtTheStartThatItsFileIsThereAndLeavesItAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hub.backup")
	if err := os.WriteFile(path, []byte("an older backup"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Neither the hub nor a Secret is asked: there are none.
	err := (&backup{}).run(t.Context(), path)
	if !errors.Is(err, errFileThere) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	if raw, err := os.ReadFile(path); err != nil || string(raw) != "an older backup" {
		t.Errorf("the file has %q, %v", raw, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
