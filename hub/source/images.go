// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

	"kumodo.io/convoy/hub/source/oci"
)

// imagesName is the file of the images in the cache's folder: lines of a key and a
// digest, the newest last.
const imagesName = "images"

// images are the digests that tags led to, on disk.
type images struct {
	name string

	mu    sync.Mutex
	file  *os.File
	known map[string]string
	order []string // keys, the oldest first
}

// openImages reads the file, if there is one. A line that was cut by a crash is
// skipped: that image is looked up again.
func openImages(name string) (*images, error) {
	i := &images{name: name, known: map[string]string{}}
	if err := i.read(); err != nil {
		return nil, fmt.Errorf("digests of images: %w", err)
	}
	if err := i.rewriteLocked(); err != nil {
		return nil, fmt.Errorf("digests of images: %w", err)
	}
	return i, nil
}

func (i *images) read() error {
	file, err := os.Open(i.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(io.LimitReader(file, maxImagesBytes))
	for lines.Scan() {
		key, digest, ok := strings.Cut(lines.Text(), " ")
		if ok && oci.IsDigest(digest) && i.known[key] == "" {
			i.known[key] = digest
			i.order = append(i.order, key)
		}
	}
	if err := lines.Err(); !errors.Is(err, bufio.ErrTooLong) {
		return err
	}
	return nil // no line of ours: what follows it is looked up again
}

func (i *images) get(key string) (string, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	digest, ok := i.known[key]
	return digest, ok
}

// put remembers a digest; when it returns, it is on disk.
func (i *images) put(key, digest string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, ok := i.known[key]; ok {
		return nil
	}
	if len(i.order) >= maxImages {
		if err := i.rewriteLocked(); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(i.file, key, digest); err != nil {
		return err
	}
	if err := i.file.Sync(); err != nil {
		return err
	}
	i.known[key] = digest
	i.order = append(i.order, key)
	return nil
}

// rewriteLocked drops the older half if there are too many, and begins a new file.
func (i *images) rewriteLocked() error {
	if len(i.order) >= maxImages {
		gone := i.order[:len(i.order)/2]
		i.order = append([]string(nil), i.order[len(gone):]...)
		for _, key := range gone {
			delete(i.known, key)
		}
	}
	next, err := os.OpenFile(i.name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(next)
	for _, key := range i.order {
		if _, err := fmt.Fprintln(out, key, i.known[key]); err != nil {
			return errors.Join(err, next.Close())
		}
	}
	if err := errors.Join(out.Flush(), next.Sync(), os.Rename(next.Name(), i.name)); err != nil {
		return errors.Join(err, next.Close())
	}
	old := i.file
	i.file = next
	if old != nil {
		return old.Close()
	}
	return nil
}

func (i *images) close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.file.Close()
}
