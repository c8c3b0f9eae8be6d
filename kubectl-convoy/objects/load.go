// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"kumodo.io/convoy/pkg/manifest"
)

// unknown is base64 that takes the place of a mark in manifests that are read back: the
// value of a Secret has to be base64.
const unknown = "Y29udm95LXNlYWxlZA=="

// Load reads the manifests of a file, or of all files below a folder, as the objects
// that they are. Values that are masked in them stay unknown.
func Load(path, namespace string) (*manifest.Set, error) {
	set := &manifest.Set{Namespace: namespace}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return set, load(set, path, new(int64))
	}
	var total int64
	count := 0
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case !entry.Type().IsRegular() || !manifest.IsManifest(name):
			return nil
		}
		if count++; count > maxFiles {
			return fmt.Errorf("%s: %w: more than %d files", path, ErrTooLarge, maxFiles)
		}
		return load(set, name, &total)
	})
	return set, err
}

// load adds the objects of one file.
func load(set *manifest.Set, name string, total *int64) (err error) {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	data, err := io.ReadAll(io.LimitReader(file, manifest.MaxFileBytes+1))
	if err != nil {
		return err
	}
	if *total += int64(len(data)); *total > maxBytes || len(data) > manifest.MaxFileBytes {
		return fmt.Errorf("%s: %w", name, ErrTooLarge)
	}
	return parse(set, name, data)
}

// Parse is Load of a file that was read.
func Parse(name string, data []byte, namespace string) (*manifest.Set, error) {
	set := &manifest.Set{Namespace: namespace}
	if len(data) > manifest.MaxFileBytes {
		return nil, fmt.Errorf("%s: %w", name, ErrTooLarge)
	}
	return set, parse(set, name, data)
}

func parse(set *manifest.Set, name string, data []byte) error {
	parsed := name
	if !manifest.IsManifest(name) {
		parsed += ".yaml" // a file that was named is read whatever its name is
	}
	objects, err := manifest.Parse(parsed, marker.ReplaceAll(data, []byte(unknown)))
	if err != nil {
		return err
	}
	set.Objects = append(set.Objects, objects...)
	return nil
}

// isUnknown says whether a value was masked in what it was read from.
func (m *Masker) isUnknown(text string) bool {
	return strings.Contains(text, unknown) || text == m.mark(unknown)
}
