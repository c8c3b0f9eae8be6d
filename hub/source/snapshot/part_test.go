// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"archive/tar"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/hub/source/snapshot"
)

// written makes a snapshot: names with "-> " are links.
func written(t *testing.T, nodes map[string]string) *snapshot.Snapshot {
	t.Helper()
	dir := t.TempDir()
	w, err := snapshot.Create(dir, "sha256:1")
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(nodes))
	for name := range nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if target := nodes[name]; len(target) > 3 && target[:3] == "-> " {
			err = w.Symlink(name, target[3:])
		} else {
			var content snapshot.Content
			if content, err = w.Content([]byte(target)); err == nil {
				err = w.File(name, false, content)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func sample(t *testing.T) *snapshot.Snapshot {
	return written(t, map[string]string{
		"app/a.yaml": "a", "app/out": "-> ../../outside", "app/link.yaml": "-> ../base/b.yaml",
		"base/b.yaml": "b", "linked": "-> base", "other/c.yaml": "c",
	})
}

func TestKU04APartHasItsPathsAndNamesLinksThatLeaveTheSource(t *testing.T) {
	stream, err := sample(t).Part([]string{"app", "linked", "missing"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for reader := tar.NewReader(stream); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		got[header.Name] = string(data) + header.PAXRecords[snapshot.RecordFault]
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	want := map[string]string{
		"app/a.yaml": "a", "app/link.yaml": "b", "linked/b.yaml": "b",
		"app/out/": "a symbolic link that cannot be followed: app/out: it leaves the repository",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatStandsAtAPath(t *testing.T) {
	s := sample(t)
	for name, want := range map[string]snapshot.Kind{
		"app": snapshot.Folder, ".": snapshot.Folder, "app/a.yaml": snapshot.File, "linked": snapshot.Folder,
		"linked/b.yaml": snapshot.File, "app/out": snapshot.Fault, "missing": snapshot.Absent, "app/a.yaml/x": snapshot.Absent,
	} {
		if got, err := s.Kind(name); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
	if _, err := s.Kind("../x"); !errors.Is(err, snapshot.ErrPath) {
		t.Errorf("got %v", err)
	}
}

func TestAnInputDigestIsThatOfThePathWhereAllCanBeRead(t *testing.T) {
	s := sample(t)
	for _, name := range []string{"base", "linked", "other/c.yaml"} {
		strict, err := s.PathDigest(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.InputDigest(name); err != nil || got != strict {
			t.Errorf("%s: %s, %v, want %s", name, got, err, strict)
		}
	}
	if got, err := s.InputDigest("missing"); err != nil || got != "absent" {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := s.InputDigest("app"); err != nil || got == "absent" {
		t.Errorf("got %s, %v", got, err)
	}
}
