// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/hub/render/files"
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

func marked(name, record, value string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Format: tar.FormatPAX, PAXRecords: map[string]string{record: value}}
}

func TestAStreamOfASnapshotIsATree(t *testing.T) {
	stream := archive(t,
		&tar.Header{Typeflag: tar.TypeReg, Name: "app/a.yaml", Size: 3},
		&tar.Header{Typeflag: tar.TypeReg, Name: "app/skipped.bin", Size: files.MaxFileBytes + 1},
		&tar.Header{Typeflag: tar.TypeReg, Name: "app/big.yaml", Size: files.MaxFileBytes + 1},
		marked("app/sub", snapshot.RecordSubmodule, "x"), marked("app/link", snapshot.RecordFault, "it leaves the repository"),
	)
	tree, err := files.ReadTar(stream, nil, manifest.IsManifest)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"app/a.yaml", "app/big.yaml", "app/link", "app/skipped.bin", "app/sub"}, tree.List("app")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, want := range map[string]error{"app/a.yaml": nil, "app/big.yaml": files.ErrTooLarge, "app/sub/x": files.ErrSubmodule, "app/link": files.ErrLink} {
		if _, err := tree.Read(name); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStreamsThatAreRefused(t *testing.T) {
	many := make([]*tar.Header, files.MaxFiles+1)
	for i := range many {
		many[i] = &tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprint(i)}
	}
	tests := []struct {
		name   string
		stream *bytes.Buffer
		want   error
		text   string
	}{
		{"too many files", archive(t, many...), files.ErrTooLarge, "more than 10000 files"},
		{"a cut stream", bytes.NewBuffer(archive(t, &tar.Header{Typeflag: tar.TypeReg, Name: "a.yaml", Size: 5000}).Bytes()[:1000]), files.ErrTar, ""},
		{"no tar at all", bytes.NewBufferString(strings.Repeat("x", 2000)), files.ErrTar, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := files.ReadTar(test.stream, nil, nil)
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v", err)
			}
		})
	}
}
