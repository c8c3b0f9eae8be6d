// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kumodo.io/convoy/hub/render/files"
)

// A folder on disk is taken as the hub takes a source: links inside of it are followed,
// what leads out of it or cannot be had says why when it is read, and nothing else is
// touched.
func TestAFolderIsTakenAsASource(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), t.TempDir()
	write := func(name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"app/a.yaml", "shared/b.yaml", ".git/config", "app/module/.git", "app/module/c.yaml", "else/d.yaml"} {
		write(filepath.Join(dir, name))
	}
	write(filepath.Join(outside, "secret.yaml"))
	for link, to := range map[string]string{
		"app/shared": "../shared", "app/file.yaml": "../shared/b.yaml", "app/circle": "..", "app/out": outside, "app/up.yaml": "../../secret.yaml", "app/nowhere": "none",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := openFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	tree, err := f.part([]string{"app"})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		name string
		want error
	}{
		"a file":                               {"app/a.yaml", nil},
		"below a link to a folder beside it":   {"app/shared/b.yaml", nil},
		"a link to a file beside it":           {"app/file.yaml", nil},
		"below a link to what it is in":        {"app/circle/app/a.yaml", files.ErrLink},
		"below a link out of the source":       {"app/out/secret.yaml", files.ErrLink},
		"a link that climbs out of the source": {"app/up.yaml", files.ErrLink},
		"a link to nothing":                    {"app/nowhere", files.ErrLink},
		"in a submodule":                       {"app/module/c.yaml", files.ErrSubmodule},
		"what Git keeps for itself":            {".git/config", fs.ErrNotExist},
		"what is there and was not asked for":  {"else/d.yaml", fs.ErrNotExist},
		"what is not there":                    {"app/z.yaml", fs.ErrNotExist},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := tree.Read(test.name); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
	for name, says := range map[string]string{"app/out/secret.yaml": "it leaves the source", "app/up.yaml": "it leaves the source", "app/nowhere": "it leads nowhere"} {
		if _, err := tree.Read(name); err == nil || !strings.HasSuffix(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if missing := tree.Missing(); len(missing) == 0 {
		t.Error("what is beyond the part is not told of")
	}
	if tree, err = f.part([]string{"app", "else"}); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Read("else/d.yaml"); err != nil {
		t.Errorf("once it was asked for: %v", err)
	}
}
