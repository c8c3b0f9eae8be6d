// SPDX-License-Identifier: Apache-2.0

package content_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"kumodo.io/convoy/hub/render/content"
	"kumodo.io/convoy/hub/source/snapshot"
	"kumodo.io/convoy/pkg/manifest"
)

func archive(t *testing.T, headers ...*tar.Header) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, header := range headers {
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, header.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestASubmoduleInAStreamOfASnapshotIsKnownHere(t *testing.T) {
	stream := archive(t, &tar.Header{Typeflag: tar.TypeDir, Name: "app/base/", Format: tar.FormatPAX, PAXRecords: map[string]string{snapshot.RecordSubmodule: "x"}})
	if _, err := content.ReadTar(stream, manifest.IsManifest); !errors.Is(err, content.ErrSubmodule) {
		t.Errorf("got %v", err)
	}
}

func TestStreamsThatAreRefused(t *testing.T) {
	many := make([]*tar.Header, content.MaxFiles+1)
	for i := range many {
		many[i] = &tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprint(i)}
	}
	tests := []struct {
		name   string
		stream *bytes.Buffer
		want   error
		text   string
	}{
		{"too many files", archive(t, many...), content.ErrTooLarge, "more than 10000 files"},
		{"too large a file", archive(t, &tar.Header{Typeflag: tar.TypeReg, Name: "app/big.yaml", Size: content.MaxFileBytes + 1}), content.ErrTooLarge, "app/big.yaml"},
		{"a cut stream", bytes.NewBuffer(archive(t, &tar.Header{Typeflag: tar.TypeReg, Name: "a.yaml", Size: 5000}).Bytes()[:1000]), content.ErrTar, ""},
		{"no tar at all", bytes.NewBufferString(strings.Repeat("x", 2000)), content.ErrTar, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := content.ReadTar(test.stream, func(string) bool { return true })
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestFilesThatAreNotKeptCostNothing(t *testing.T) {
	stream := archive(t, &tar.Header{Typeflag: tar.TypeReg, Name: "app/big.bin", Size: content.MaxFileBytes + 1}, &tar.Header{Typeflag: tar.TypeReg, Name: "app/a.yaml", Size: 3})
	files, err := content.ReadTar(stream, manifest.IsManifest)
	if err != nil || len(files) != 1 || files[0].Name != "app/a.yaml" {
		t.Errorf("%d files, %v", len(files), err)
	}
}

func TestAllFaultsOfAllFilesAreNamed(t *testing.T) {
	_, err := content.Manifests([]content.File{
		{Name: "a.yaml", Data: []byte("a: [")},
		{Name: "b.yaml", Data: []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")},
		{Name: "c.yaml", Data: []byte("kind: X\n---\napiVersion: v1\n")},
	}, "team", nil)
	if err == nil {
		t.Fatal("no error")
	}
	for _, text := range []string{"a.yaml, document 1", "b.yaml: is a Git LFS pointer", "c.yaml, document 1", "c.yaml, document 2"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
	if _, err := content.Manifests(nil, "team", nil); !errors.Is(err, content.ErrEmpty) {
		t.Errorf("no files: %v", err)
	}
}
