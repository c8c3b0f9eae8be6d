// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

var testHead = archiveHead{HubID: "0123456789abcdef", Version: "v1", At: time.Date(2026, 1, 31, 1, 2, 3, 0, time.UTC)}

func testArchive(t *testing.T) ([]byte, []corev1alpha1.BackupPiece) {
	t.Helper()
	pieces := []corev1alpha1.BackupPiece{
		{Kind: corev1alpha1.BackupBlob, Name: "sha256/00", Size: 3, Data: []byte{0, 1, 2}},
		{Kind: corev1alpha1.BackupKey, Name: "/a", Size: 5, Data: []byte("value")},
	}
	var out bytes.Buffer
	a, err := newArchiveWriter(&out, testHead)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.secret("convoy-order-key", map[string][]byte{"key": []byte("secret")}); err != nil {
		t.Fatal(err)
	}
	for _, piece := range pieces {
		if err := a.piece(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.end(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), pieces
}

func TestAnArchiveGivesWhatWasPutIn(t *testing.T) {
	raw, want := testArchive(t)
	var pieces []corev1alpha1.BackupPiece
	var secrets []string
	head, digest, err := readArchive(bytes.NewReader(raw), func(_ archiveHead, line archiveLine) error {
		if line.Piece != nil {
			pieces = append(pieces, *line.Piece)
		}
		if line.Secret != nil {
			secrets = append(secrets, line.Secret.Name+"="+string(line.Secret.Data["key"]))
		}
		return nil
	})
	if err != nil || len(digest) != 64 || head.HubID != testHead.HubID || !head.At.Equal(testHead.At) {
		t.Fatalf("head %+v, digest %q: %v", head, digest, err)
	}
	if diff := cmp.Diff(want, pieces); diff != "" {
		t.Errorf("pieces (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"convoy-order-key=secret"}, secrets); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}

func TestAnArchiveThatIsNotWholeIsRefused(t *testing.T) {
	raw, _ := testArchive(t)
	unpack, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unpack.Close()
	plain, err := unpack.DecodeAll(raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	pack, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(plain), "\n"), "\n")
	join := func(lines ...string) []byte { return pack.EncodeAll([]byte(strings.Join(lines, "")), nil) }
	for name, c := range map[string]struct {
		raw  []byte
		want error
	}{
		"an empty file":          {nil, errArchive},
		"something else":         {[]byte("apiVersion: v1\n"), errArchive},
		"another format":         {join(`{"format":"other/v1"}` + "\n"), errArchive},
		"a file cut in the pack": {raw[:len(raw)-5], errTruncated},
		"a file without its end": {join(lines[:len(lines)-1]...), errTruncated},
		"a line that is missing": {join(append(append([]string{}, lines[:1]...), lines[2:]...)...), errTruncated},
		"a line that changed":    {join(append(append([]string{}, lines[0], strings.Replace(lines[1], "c2VjcmV0", "c2VjcmV1", 1)), lines[2:]...)...), errTruncated},
		"something behind":       {join(append(append([]string{}, lines...), "\n{}\n")...), errTruncated},
		"a line without an end":  {join(lines[0], strings.Repeat("x", maxArchiveLine+1)), errTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readArchive(bytes.NewReader(c.raw), func(archiveHead, archiveLine) error { return nil })
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
