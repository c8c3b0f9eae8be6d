// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/hub/store/file"
	"kumodo.io/convoy/hub/store/oci"
)

func TestATornBlobIsLeftOutOfALayoutAndNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	backend, err := file.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	plain := store.NewPlain(backend)
	if _, err := plain.Put(t.Context(), strings.NewReader("whole")); err != nil {
		t.Fatal(err)
	}
	torn, err := plain.Put(t.Context(), strings.NewReader("torn"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "blobs", strings.Replace(torn.Digest, ":", "/", 1))
	if err := os.WriteFile(path, []byte("t0rn"), 0o600); err != nil {
		t.Fatal(err)
	}
	beside, err := file.Beside(dir)
	if err != nil {
		t.Fatal(err)
	}
	done, err := oci.Export(t.Context(), beside, t.TempDir())
	if done.Renders != 1 || !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), torn.Digest) {
		t.Errorf("exported %+v, %v, want 1 render and the name of the torn one", done, err)
	}
	if _, err := file.Beside(t.TempDir()); err == nil {
		t.Error("a folder without renders was opened")
	}
}

func TestWhereRendersAreIsCheckedBeforeAnythingIsAsked(t *testing.T) {
	t.Parallel()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		options oci.Options
		want    error
	}{
		"a folder":                  {oci.Options{URL: "file:///renders"}, oci.ErrURL},
		"no repository":             {oci.Options{URL: "oci://registry.test"}, oci.ErrURL},
		"capital letters":           {oci.Options{URL: "oci://registry.test/Renders"}, oci.ErrURL},
		"a tag":                     {oci.Options{URL: "oci://registry.test/renders:latest"}, oci.ErrURL},
		"a password in it":          {oci.Options{URL: "oci://a:b@registry.test/renders"}, oci.ErrURL},
		"a CA file without any":     {oci.Options{URL: "oci://registry.test/renders", CAFile: ca}, oci.ErrCA},
		"a CA file that is missing": {oci.Options{URL: "oci://registry.test/renders", CAFile: ca + "x"}, os.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.options.Dir = t.TempDir()
			if _, err := oci.New(c.options); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
