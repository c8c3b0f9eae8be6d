// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
)

const (
	// maxIndexBytes bounds an index: 10,000 paths of 4 KiB.
	maxIndexBytes = 64 << 20
	// MaxFiles below one path, links followed.
	MaxFiles = 10_000
	// MaxBytes below one path, links followed.
	MaxBytes = 128 << 20
	// maxHops of symbolic links on the way to one file.
	maxHops = 40
)

// Snapshot is an open snapshot. It may be read by many at once, and goes on being
// readable when its folder is removed.
type Snapshot struct {
	commit   string
	size     int64
	content  *os.File // closed by the runtime when the snapshot is let go
	nodes    map[string]*node
	corrupt  atomic.Bool
	children map[string][]string // folder -> names, in order; "" is the root
}

// Open reads the index of a snapshot's folder.
func Open(dir string) (*Snapshot, error) {
	file, err := os.Open(filepath.Join(dir, indexName))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxIndexBytes))
	if err != nil {
		return nil, err
	}
	var found index
	if err := json.Unmarshal(text, &found); err != nil || found.Format != format {
		return nil, fmt.Errorf("%w: its index", ErrCorrupt)
	}
	content, err := os.Open(filepath.Join(dir, contentName))
	if err != nil {
		return nil, err
	}
	s := &Snapshot{commit: found.Commit, content: content, size: found.Size + int64(len(text)), nodes: map[string]*node{}, children: map[string][]string{}}
	info, err := content.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != found.Size {
		return nil, fmt.Errorf("%w: its content has %d bytes instead of %d", ErrCorrupt, info.Size(), found.Size)
	}
	for i := range found.Nodes {
		n := &found.Nodes[i]
		if s.nodes[n.Path] != nil {
			return nil, fmt.Errorf("%w: %s twice", ErrCorrupt, n.Path)
		}
		s.nodes[n.Path] = n
		s.addToFolders(n.Path)
	}
	return s, nil
}

// addToFolders makes the folders of a path known. Git lists a folder's entries
// together, so looking at the last name is enough to add none twice.
func (s *Snapshot) addToFolders(path string) {
	for {
		folder, name := "", path
		if i := strings.LastIndexByte(path, '/'); i >= 0 {
			folder, name = path[:i], path[i+1:]
		}
		names, known := s.children[folder]
		if n := len(names); n == 0 || names[n-1] != name {
			s.children[folder] = append(names, name)
		}
		if known || folder == "" {
			return
		}
		path = folder
	}
}

// Commit of the snapshot: 40 hexadecimal digits.
func (s *Snapshot) Commit() string { return s.commit }

// Size on disk in bytes.
func (s *Snapshot) Size() int64 { return s.size }

// Corrupt reports that a file of the snapshot was found not to be what was fetched.
func (s *Snapshot) Corrupt() bool { return s.corrupt.Load() }

// Close gives the file back early. It is not needed: a snapshot that nobody holds
// is closed with it.
func (s *Snapshot) Close() error { return s.content.Close() }

// isFolder reports a folder of the tree, by its clean path.
func (s *Snapshot) isFolder(path string) bool {
	_, ok := s.children[path]
	return ok || path == ""
}
