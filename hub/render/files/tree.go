// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// File is one file of a source, named by its path in it.
type File struct {
	Name string
	Data []byte
}

// Tree is the tree of one source. It may be read by many at once; the bytes that it
// gives are shared and not to be written to.
type Tree struct {
	files   map[string][]byte
	names   []string // of the files, sorted
	folders map[string]bool
	faults  map[string]error
	scope   []string // what of the source this is; nil: all

	mu      sync.Mutex
	seen    map[string]bool // path -> looked at; guarded by mu
	missing map[string]bool // path -> looked at outside the scope; guarded by mu
}

// New makes a tree. faults are paths that stand in the source and cannot be read, and
// why: ErrSubmodule, ErrLink, ErrTooLarge. What is below such a path has its fault. A
// file that is a pointer of Git LFS has the fault ErrPointer by itself.
func New(list []File, faults map[string]error) *Tree { return NewPart(list, faults, nil) }

// NewPart makes a tree of what is in and below some paths of a source, so that a
// render in a large one need not be sent all of it. Whatever else is looked for is
// not there, and Missing tells of it: the render has to be made again with more.
func NewPart(list []File, faults map[string]error, scope []string) *Tree {
	t := &Tree{
		files: make(map[string][]byte, len(list)), folders: map[string]bool{"": true},
		faults: make(map[string]error, len(faults)), scope: scope, seen: map[string]bool{}, missing: map[string]bool{},
	}
	for name, err := range faults {
		t.faults[name] = err
		t.addFolders(name)
	}
	for _, file := range list {
		if _, twice := t.files[file.Name]; !twice {
			t.names = append(t.names, file.Name)
		}
		t.files[file.Name] = file.Data
		t.addFolders(file.Name)
		if IsPointer(file.Data) {
			t.faults[file.Name] = ErrPointer
		}
	}
	slices.Sort(t.names)
	return t
}

func (t *Tree) addFolders(name string) {
	for folder := parent(name); !t.folders[folder]; folder = parent(folder) {
		t.folders[folder] = true
	}
}

func parent(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return ""
}

// Clean brings a path to the form that the tree uses: relative, "" for the whole. It
// refuses what leads out of the tree.
func Clean(text string) (string, error) {
	if strings.HasPrefix(text, "/") || strings.ContainsAny(text, "\\\x00") {
		return "", fmt.Errorf("%q: %w", text, ErrOutside)
	}
	clean := path.Clean(text)
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fmt.Errorf("%q: %w", text, ErrOutside)
	}
	if clean == "." {
		return "", nil
	}
	return clean, nil
}

// Read gives a file. What stands there and cannot be read says why; what does not
// stand there is fs.ErrNotExist. That it was looked for counts as seen either way: a
// file that appears changes a render that asked for it.
func (t *Tree) Read(name string) ([]byte, error) {
	clean, err := Clean(name)
	if err != nil {
		return nil, err
	}
	t.see(clean)
	if err := t.fault(clean); err != nil {
		return nil, err
	}
	if data, ok := t.files[clean]; ok {
		return data, nil
	}
	if t.folders[clean] {
		return nil, fmt.Errorf("%s: %w", clean, ErrFolder)
	}
	return nil, fmt.Errorf("%s: %w", clean, fs.ErrNotExist)
}

// fault is that of a path or of what is above it.
func (t *Tree) fault(clean string) error {
	for at := clean; ; at = parent(at) {
		if err, ok := t.faults[at]; ok {
			return fmt.Errorf("%s: %w", at, err)
		}
		if at == "" {
			return nil
		}
	}
}

// List gives the paths of all files below a folder, or of the file that it is, sorted.
// Those that cannot be read are among them: Read says why. Of a path below something
// that cannot be read it gives that.
func (t *Tree) List(dir string) []string {
	clean, err := Clean(dir)
	if err != nil {
		return nil // nothing of the tree is there
	}
	t.see(clean)
	var list []string
	for at := parent(clean); at != ""; at = parent(at) {
		if _, ok := t.faults[at]; ok {
			return []string{at}
		}
	}
	for name := range t.faults {
		if _, file := t.files[name]; !file && below(name, clean) {
			list = append(list, name)
		}
	}
	for _, name := range t.names {
		if below(name, clean) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// below reports a path at or below a folder.
func below(name, folder string) bool {
	return folder == "" || name == folder || strings.HasPrefix(name, folder) && name[len(folder)] == '/'
}

// IsDir reports a folder.
func (t *Tree) IsDir(name string) bool {
	clean, err := Clean(name)
	if err != nil {
		return false
	}
	if t.folders[clean] {
		return true // it will be one as long as what is in it is there
	}
	t.see(clean)
	return t.folders[clean]
}

// IsFile reports a file, also one that cannot be read.
func (t *Tree) IsFile(name string) bool {
	clean, err := Clean(name)
	if err != nil {
		return false
	}
	t.see(clean)
	_, file := t.files[clean]
	_, fault := t.faults[clean]
	return file || fault && !t.folders[clean]
}

// Large names the files of at least so many bytes. Nothing counts as seen for it.
func (t *Tree) Large(bytes int) []string {
	var list []string
	for _, name := range t.names {
		if len(t.files[name]) >= bytes {
			list = append(list, name)
		}
	}
	return list
}

// Pointer reports a file that is a pointer of Git LFS and nothing else.
func (t *Tree) Pointer(name string) bool {
	data, ok := t.files[name]
	return ok && IsPointer(data)
}

func (t *Tree) see(clean string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[clean] = true
	if t.scope != nil && !slices.ContainsFunc(t.scope, func(part string) bool { return below(clean, part) }) {
		t.missing[clean] = true
	}
}

// Missing names the paths that were looked at and are outside of what the tree was
// made of, sorted.
func (t *Tree) Missing() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]string, 0, len(t.missing))
	for name := range t.missing {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// IsPointer reports a Git LFS pointer: a short text of a fixed form. A manifest
// that mentions one is none.
func IsPointer(data []byte) bool {
	const first = "version https://git-lfs.github.com/spec/v1\n"
	return len(data) < 1024 && bytes.HasPrefix(data, []byte(first)) &&
		bytes.Contains(data, []byte("\noid sha256:")) && bytes.Contains(data, []byte("\nsize "))
}
