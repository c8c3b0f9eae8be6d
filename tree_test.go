// SPDX-License-Identifier: Apache-2.0

package convoy_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// module is the import path of everything here but e2e/kube and hack/{tools,lint}.
const module = "kumodo.io/convoy"

// skipped are folders that are not the project's own text: build results, state
// and what tests read on purpose in odd forms.
var skipped = map[string]bool{
	".git": true, "bin": true, ".kube": true, ".demo": true, ".cluster": true, "testdata": true,
}

// files returns all files of the project for which want is true, with slashes,
// relative to the root.
func files(t *testing.T, want func(path string) bool) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if skipped[entry.Name()] {
				return filepath.SkipDir
			}
			return nil
		}
		if path = filepath.ToSlash(path); want(path) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("walking the tree: %v", err)
	}
	return found
}

func goFile(path string) bool { return strings.HasSuffix(path, ".go") }

func generated(path string) bool { return strings.Contains(path, "zz_generated") }

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("reading: %v", err)
	}
	return string(data)
}

// golist runs go list with args and returns its output.
func golist(t *testing.T, args ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil {
		t.Fatalf("go list %s: %v\n%s", strings.Join(args, " "), err, problems.String())
	}
	return out.Bytes()
}
