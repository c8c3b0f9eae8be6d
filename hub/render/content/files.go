// SPDX-License-Identifier: Apache-2.0

package content

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"kumodo.io/convoy/pkg/manifest"
)

// Limits of what one render reads.
const (
	MaxFiles     = 10_000
	MaxFileBytes = manifest.MaxFileBytes
	MaxBytes     = 128 << 20
)

// recordSubmodule is snapshot.RecordSubmodule; a test holds them equal. This
// package stands alone, so that it can run without the hub.
const recordSubmodule = "CONVOY.submodule"

// File is one file of a source, named by its path in the repository.
type File struct {
	Name string
	Data []byte
}

// ReadTar reads the files of a source that keep accepts by their names; the data
// of the others is skipped. A submodule is an error that names it.
func ReadTar(r io.Reader, keep func(name string) bool) ([]File, error) {
	var files []File
	var total int64
	count := 0
	for reader := tar.NewReader(r); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTar, err)
		}
		name := strings.TrimSuffix(header.Name, "/")
		if header.PAXRecords[recordSubmodule] != "" {
			return nil, fmt.Errorf("%s: %w", name, ErrSubmodule)
		}
		if count++; count > MaxFiles {
			return nil, fmt.Errorf("%w: more than %d files", ErrTooLarge, MaxFiles)
		}
		if header.Typeflag != tar.TypeReg || !keep(name) {
			continue
		}
		if header.Size > MaxFileBytes {
			return nil, fmt.Errorf("%s: %w: %d MiB, a file may have %d MiB", name, ErrTooLarge, header.Size>>20, MaxFileBytes>>20)
		}
		if total += header.Size; total > MaxBytes {
			return nil, fmt.Errorf("%s: %w: more than %d MiB of files", name, ErrTooLarge, MaxBytes>>20)
		}
		data := bytes.NewBuffer(make([]byte, 0, header.Size))
		if _, err := io.Copy(data, reader); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", name, ErrTar, err)
		}
		files = append(files, File{Name: name, Data: data.Bytes()})
	}
}

// isPointer reports a Git LFS pointer: a short text of a fixed form. A manifest
// that mentions one is none.
func isPointer(data []byte) bool {
	const first = "version https://git-lfs.github.com/spec/v1\n"
	return len(data) < 1024 && bytes.HasPrefix(data, []byte(first)) &&
		bytes.Contains(data, []byte("\noid sha256:")) && bytes.Contains(data, []byte("\nsize "))
}
