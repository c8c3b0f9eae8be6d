// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/hub/source/archive"
	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/registrytest"
)

type entry = registrytest.Entry

func unpack(t testing.TB, data []byte, place archive.Place) (map[string]string, error) {
	t.Helper()
	dir := t.TempDir()
	tree, err := archive.Create(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Unpack(t.Context(), bytes.NewReader(data), place); err != nil {
		if err := tree.Abort(); err != nil {
			t.Fatal(err)
		}
		return nil, err
	}
	if err := tree.Commit(); err != nil {
		t.Fatal(err)
	}
	return registrytest.Files(t, dir), nil
}

func TestAnArchiveBecomesASnapshot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		entries []entry
		place   archive.Place
		want    map[string]string
	}{
		{
			"files keep their paths and come back in any order", []entry{
				{Name: "b/z.yaml", Data: "1"}, {Name: "a.yaml", Data: "2"}, {Name: "b/", Type: tar.TypeDir}, {Name: "b/a/c.yaml", Data: "3"}, {Name: "b.yaml", Data: "4"},
			},
			archive.Below(""), map[string]string{"b/z.yaml": "1", "a.yaml": "2", "b/a/c.yaml": "3", "b.yaml": "4"},
		},
		{
			"a leading ./ means nothing", []entry{{Name: "./", Type: tar.TypeDir}, {Name: "./a.yaml", Data: "1"}},
			archive.Below(""), map[string]string{"a.yaml": "1"},
		},
		{
			"everything goes below a folder", []entry{{Name: "a.yaml", Data: "1"}},
			archive.Below("x/y"), map[string]string{"x/y/a.yaml": "1"},
		},
		{
			"the folder of a chart gets the chart's name", []entry{{Name: "chart-1.2/Chart.yaml", Data: "1"}, {Name: "chart-1.2/templates/a.yaml", Data: "2"}},
			archive.InFolder("web"), map[string]string{"web/Chart.yaml": "1", "web/templates/a.yaml": "2"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := unpack(t, registrytest.Tgz(t, c.entries...), c.place)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnArchiveThatIsNoTreeIsRefusedByName(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("d/", 70) + "f"
	for _, c := range []struct {
		name  string
		data  []byte
		class fault.Class
		says  string
	}{
		{"a path that climbs out", registrytest.Tgz(t, entry{Name: "a/../../etc/passwd"}), fault.ClassInvalid, "etc/passwd"},
		{"a path that climbs inside", registrytest.Tgz(t, entry{Name: "a/../b"}), fault.ClassInvalid, "a/../b"},
		{"an absolute path", registrytest.Tgz(t, entry{Name: "/etc/passwd"}), fault.ClassInvalid, "absolute"},
		{"a backslash", registrytest.Tgz(t, entry{Name: `a\..\b`}), fault.ClassInvalid, `a\..\b`},
		{"a symbolic link", registrytest.Tgz(t, entry{Name: "evil", Type: tar.TypeSymlink, Link: "/etc"}), fault.ClassInvalid, "evil: a link"},
		{"a hard link", registrytest.Tgz(t, entry{Name: "evil", Type: tar.TypeLink, Link: "x"}), fault.ClassInvalid, "evil: a link"},
		{"a device", registrytest.Tgz(t, entry{Name: "dev", Type: tar.TypeChar}), fault.ClassInvalid, "dev"},
		{"a pipe", registrytest.Tgz(t, entry{Name: "pipe", Type: tar.TypeFifo}), fault.ClassInvalid, "pipe"},
		{"a name twice", registrytest.Tgz(t, entry{Name: "a"}, entry{Name: "./a"}), fault.ClassInvalid, "a: the name is there twice"},
		{"a file that is a folder", registrytest.Tgz(t, entry{Name: "a"}, entry{Name: "a/b"}), fault.ClassInvalid, "a/b: a is a file and a folder"},
		{"a folder that is a file", registrytest.Tgz(t, entry{Name: "a/b"}, entry{Name: "a"}), fault.ClassInvalid, "a: the name is there twice"},
		{"folders without end", registrytest.Tgz(t, entry{Name: deep}), fault.ClassTooLarge, "folders deep"},
		{"a name that is no UTF-8", registrytest.Tgz(t, entry{Name: "a\xff"}), fault.ClassInvalid, "UTF-8"},
		{"no archive", []byte("<html>"), fault.ClassInvalid, "not an archive"},
		{"a cut archive", registrytest.Tgz(t, entry{Name: "a", Data: strings.Repeat("x", 10_000)})[:60], fault.ClassInvalid, "not an archive"},
		{"a file beyond the limit", registrytest.Tgz(t, entry{Name: "big", Data: strings.Repeat("x", archive.MaxFileBytes+1)}), fault.ClassTooLarge, "big"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := unpack(t, c.data, archive.Below(""))
			if err == nil || fault.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v of class %s, want %s with %q", err, fault.ClassOf(err), c.class, c.says)
			}
		})
	}
}

func TestAnArchiveBombEndsAtTheLimit(t *testing.T) {
	t.Parallel()
	var entries []entry
	for i := range 6 {
		entries = append(entries, entry{Name: fmt.Sprint("zero-", i), Data: strings.Repeat("\x00", 30<<20)})
	}
	data := registrytest.Tgz(t, entries...)
	_, err := unpack(t, data, archive.Below(""))
	if fault.ClassOf(err) != fault.ClassTooLarge {
		t.Errorf("%d bytes that unpack to 180 MiB: %v", len(data), err)
	}
}

func TestAChartIsOneFolder(t *testing.T) {
	t.Parallel()
	_, err := unpack(t, registrytest.Tgz(t, entry{Name: "a/Chart.yaml"}, entry{Name: "b/Chart.yaml"}), archive.InFolder("a"))
	if err == nil || !strings.Contains(err.Error(), "holds one folder") {
		t.Errorf("got %v", err)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(registrytest.Tgz(f, entry{Name: "a/b", Data: "x"}, entry{Name: "c", Type: tar.TypeSymlink, Link: ".."}))
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, data []byte) {
		files, err := unpack(t, data, archive.Below(""))
		if err != nil {
			return
		}
		for name := range files {
			if clean, err := archive.Clean(name); err != nil || clean != name {
				t.Errorf("a snapshot has %q", name)
			}
		}
	})
}
