// SPDX-License-Identifier: Apache-2.0

package content

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"kumodo.io/convoy/pkg/manifest"
)

// manifests makes the objects of the YAML and JSON files below a place. All of them
// are looked at; the error names every fault with file, document and line. What
// cannot be read is a fault whatever its name is: it may be a folder of manifests.
func (r *renderer) manifests(place string) error {
	names := r.tree.List(place)
	if len(names) == 0 && !r.tree.IsDir(place) {
		return fmt.Errorf("%w: %s", ErrPath, r.job.Content.Path)
	}
	parsed := make([][]manifest.Object, len(names))
	faults := make([]error, len(names))
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(names)) {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(names) {
					return
				}
				parsed[i], faults[i] = r.parse(names[i])
			}
		})
	}
	group.Wait()
	var all manifest.Errors
	r.set = &manifest.Set{}
	for i := range names {
		all = join(all, faults[i])
		r.set.Objects = append(r.set.Objects, parsed[i]...)
	}
	if len(all) > 0 {
		return all
	}
	if len(r.set.Objects) == 0 && !r.job.AllowEmpty {
		return fmt.Errorf("%w (%d files)", ErrEmpty, len(names))
	}
	return nil
}

func (r *renderer) parse(name string) ([]manifest.Object, error) {
	data, err := r.tree.Read(name)
	if !manifest.IsManifest(name) {
		if r.tree.Pointer(name) {
			return nil, nil // a picture, say, that nobody reads
		}
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	r.begin(name)
	return manifest.Parse(name, data)
}
