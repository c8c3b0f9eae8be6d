// SPDX-License-Identifier: Apache-2.0

package files

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Records of a snapshot's stream, as hub/source/snapshot writes them; a test holds
// them equal. This package stands alone, so that it can run without the hub.
const (
	recordSubmodule = "CONVOY.submodule"
	recordFault     = "CONVOY.fault"
)

// fault is one that the stream tells.
type fault struct{ text string }

func (f fault) Error() string { return f.text }
func (f fault) Unwrap() error { return ErrLink }

// ReadTar reads the files of a source that keep accepts by their names (nil: all); the
// others are there, and empty: a folder of nothing else is a folder too. scope says what of the source the stream has; nil is
// all of it (see NewPart).
func ReadTar(r io.Reader, scope []string, keep func(name string) bool) (*Tree, error) {
	var list []File
	var total int64
	faults := map[string]error{}
	count := 0
	for reader := tar.NewReader(r); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return NewPart(list, faults, scope), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTar, err)
		}
		if count++; count > MaxFiles {
			return nil, fmt.Errorf("%w: more than %d files", ErrTooLarge, MaxFiles)
		}
		name := strings.TrimSuffix(header.Name, "/")
		if header.PAXRecords[recordSubmodule] != "" {
			faults[name] = ErrSubmodule
			continue
		}
		if text := header.PAXRecords[recordFault]; text != "" {
			faults[name] = fault{text}
			continue
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if keep != nil && !keep(name) {
			list = append(list, File{Name: name})
			continue
		}
		if header.Size > MaxFileBytes {
			faults[name] = fmt.Errorf("%w: %d MiB, a file may have %d MiB", ErrTooLarge, header.Size>>20, MaxFileBytes>>20)
			continue
		}
		if total += header.Size; total > MaxBytes {
			return nil, fmt.Errorf("%s: %w: more than %d MiB of files", name, ErrTooLarge, MaxBytes>>20)
		}
		data := bytes.NewBuffer(make([]byte, 0, header.Size))
		if _, err := io.Copy(data, reader); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", name, ErrTar, err)
		}
		list = append(list, File{Name: name, Data: data.Bytes()})
	}
}
