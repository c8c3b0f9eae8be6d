// SPDX-License-Identifier: Apache-2.0

package content

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"kumodo.io/convoy/pkg/manifest"
)

// Manifests makes the objects of YAML and JSON files. Files of other names have to
// be left out before (manifest.IsManifest).
//
// All files are looked at; the error names every fault with file, document and
// line. begin, if not nil, is told of a file before it is parsed.
func Manifests(files []File, namespace string, begin func(name string)) (*manifest.Set, error) {
	parsed := make([][]manifest.Object, len(files))
	faults := make([]error, len(files))
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(files)) {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(files) {
					return
				}
				if begin != nil {
					begin(files[i].Name)
				}
				parsed[i], faults[i] = parse(files[i])
			}
		})
	}
	group.Wait()
	var all manifest.Errors
	set := &manifest.Set{Namespace: namespace}
	for i := range files {
		var list manifest.Errors
		switch {
		case errors.As(faults[i], &list):
			all = append(all, list...)
		case faults[i] != nil:
			all = append(all, faults[i])
		}
		set.Objects = append(set.Objects, parsed[i]...)
	}
	if len(all) > 0 {
		return nil, all
	}
	if len(set.Objects) == 0 {
		return nil, fmt.Errorf("%w (%d manifest files)", ErrEmpty, len(files))
	}
	return set, set.Arrange()
}

func parse(file File) ([]manifest.Object, error) {
	if isPointer(file.Data) {
		return nil, fmt.Errorf("%s: %w", file.Name, ErrPointer)
	}
	return manifest.Parse(file.Name, file.Data)
}
