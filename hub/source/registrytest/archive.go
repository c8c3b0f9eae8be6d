// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"testing"

	"kumodo.io/convoy/hub/source/snapshot"
)

// Entry of an archive. The zero Type is a file.
type Entry struct {
	Name string
	Type byte
	Link string
	Data string
	Mode int64
}

// Tgz makes a packed archive.
func Tgz(t testing.TB, entries ...Entry) []byte {
	t.Helper()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	out := tar.NewWriter(zip)
	for _, e := range entries {
		header := &tar.Header{Name: e.Name, Typeflag: e.Type, Linkname: e.Link, Size: int64(len(e.Data)), Mode: e.Mode}
		if e.Type == 0 {
			header.Typeflag = tar.TypeReg
		}
		if e.Mode == 0 {
			header.Mode = 0o644
		}
		if err := out.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(out, e.Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// Chart makes the archive of a small chart.
func Chart(t testing.TB, name, version string, more ...Entry) []byte {
	t.Helper()
	entries := []Entry{
		{Name: name + "/Chart.yaml", Data: fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", name, version)},
		{Name: name + "/templates/config.yaml", Data: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n"},
	}
	return Tgz(t, append(entries, more...)...)
}

// Files reads a snapshot: path to content.
func Files(t testing.TB, dir string) map[string]string {
	t.Helper()
	s, err := snapshot.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := s.Tar("")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	in := tar.NewReader(stream)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(data)
	}
	if err := stream.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return files
}

// Snapshot writes files into a new snapshot and gives its folder.
func Snapshot(t testing.TB, names []string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	w, err := snapshot.Create(dir, "0000000000000000000000000000000000000000")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		content, err := w.Content([]byte(files[name]))
		if err == nil {
			err = w.File(name, false, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	return dir
}
