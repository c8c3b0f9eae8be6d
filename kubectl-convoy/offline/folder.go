// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"kumodo.io/convoy/hub/render/files"
)

// folder reads a source from disk, no more of it than is asked for. Links are followed
// inside of it, as in a snapshot of the hub.
type folder struct {
	root   *os.Root
	list   []files.File
	faults map[string]error
	known  map[string]bool // files that were read
	total  int64
}

func openFolder(name string) (*folder, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	return &folder{root: root, faults: map[string]error{}, known: map[string]bool{}}, nil
}

func (f *folder) Close() error { return f.root.Close() }

// part gives a tree of what is in and below some paths.
func (f *folder) part(scope []string) (*files.Tree, error) {
	for _, name := range scope {
		if err := f.read(name, f.above(name)); err != nil {
			return nil, err
		}
	}
	return files.NewPart(slices.Clone(f.list), f.faults, scope), nil
}

// above are the folders that a path is in; one that cannot be read has its fault.
func (f *folder) above(name string) []fs.FileInfo {
	var chain []fs.FileInfo
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		if info, err := f.root.Stat(dir); err == nil {
			chain = append(chain, info)
		}
		if dir == "." {
			return chain
		}
	}
}

// read adds a file, or all below a folder. chain are the folders around it.
func (f *folder) read(name string, chain []fs.FileInfo) error {
	at := name
	if at == "" {
		at = "."
	}
	info, err := f.root.Stat(at)
	if err != nil {
		if link, other := f.root.Lstat(at); other == nil && link.Mode()&fs.ModeSymlink != 0 {
			f.faults[name] = fmt.Errorf("%w: %w", files.ErrLink, astray(err))
			return nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the tree says so
		}
		return fmt.Errorf("%w: %w", ErrSource, err)
	}
	switch {
	case info.Mode().IsRegular():
		return f.file(name, info)
	case !info.IsDir():
		f.faults[name] = errSpecial
		return nil
	case len(chain) > maxFolderDepth || slices.ContainsFunc(chain, func(around fs.FileInfo) bool { return os.SameFile(around, info) && at != "." }):
		f.faults[name] = fmt.Errorf("%w: %w", files.ErrLink, errCircle)
		return nil
	}
	return f.folder(name, at, append(chain[:len(chain):len(chain)], info))
}

// astray says why a link cannot be followed.
func astray(err error) error {
	var system syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errNowhere
	case errors.Is(err, syscall.ELOOP):
		return errCircle
	case !errors.As(err, &system):
		return errLeaves // what a root refuses by itself, and not the system
	}
	return err
}

func (f *folder) folder(name, at string, chain []fs.FileInfo) error {
	entries, err := f.entries(at)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSource, err)
	}
	for _, entry := range entries {
		if entry.Name() == ".git" && name != "" && !entry.IsDir() {
			f.faults[name] = files.ErrSubmodule
			return nil
		}
	}
	for _, entry := range entries {
		if entry.Name() == ".git" {
			continue
		}
		if err := f.read(path.Join(name, entry.Name()), chain); err != nil {
			return err
		}
	}
	return nil
}

func (f *folder) entries(name string) (list []fs.DirEntry, err error) {
	dir, err := f.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return dir.ReadDir(-1)
}

func (f *folder) file(name string, info fs.FileInfo) (err error) {
	if f.known[name] {
		return nil
	}
	if info.Size() > files.MaxFileBytes {
		f.faults[name] = fmt.Errorf("%w: %d MiB, a file may have %d MiB", files.ErrTooLarge, info.Size()>>20, files.MaxFileBytes>>20)
		return nil
	}
	if len(f.list) >= files.MaxFiles {
		return fmt.Errorf("%s: %w: more than %d files below the paths that are read", name, ErrTooLarge, files.MaxFiles)
	}
	opened, err := f.root.Open(name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSource, err)
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	data, err := io.ReadAll(io.LimitReader(opened, files.MaxFileBytes))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSource, err)
	}
	if f.total += int64(len(data)); f.total > files.MaxBytes {
		return fmt.Errorf("%s: %w: more than %d MiB of files", name, ErrTooLarge, files.MaxBytes>>20)
	}
	f.known[name] = true
	f.list = append(f.list, files.File{Name: name, Data: data})
	return nil
}
