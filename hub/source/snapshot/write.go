// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

const (
	indexName   = "index"
	contentName = "content"
	format      = "convoy.snapshot/v1"
)

// Content is a piece of the content file.
type Content struct {
	Offset int64  `json:"offset"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// node is one path of a tree: a file, a link or a submodule.
type node struct {
	Path       string `json:"path"`
	Executable bool   `json:"executable,omitempty"`
	*Content
	Link      string `json:"link,omitempty"`
	Submodule string `json:"submodule,omitempty"`
}

type index struct {
	Format string `json:"format"`
	Commit string `json:"commit"`
	Size   int64  `json:"size"` // of the content file
	Nodes  []node `json:"nodes"`
}

// Writer writes a snapshot into a folder. Exactly one of Commit and Abort ends it.
type Writer struct {
	dir   string
	file  *os.File
	out   *bufio.Writer
	index index
}

// Create begins a snapshot in an existing folder.
func Create(dir, commit string) (*Writer, error) {
	file, err := os.OpenFile(filepath.Join(dir, contentName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &Writer{dir: dir, file: file, out: bufio.NewWriterSize(file, 256<<10), index: index{Format: format, Commit: commit}}, nil
}

// Content adds bytes that any number of files may have.
func (w *Writer) Content(data []byte) (Content, error) {
	sum := sha256.Sum256(data)
	content := Content{Offset: w.index.Size, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
	w.index.Size += content.Size
	_, err := w.out.Write(data)
	return content, err
}

// File adds a file.
func (w *Writer) File(path string, executable bool, content Content) error {
	return w.add(node{Path: path, Executable: executable, Content: &content})
}

// Symlink adds a symbolic link, whatever it leads to.
func (w *Writer) Symlink(path, target string) error {
	if target == "" {
		target = "." // an empty link; it is refused like one to its own folder
	}
	return w.add(node{Path: path, Link: target})
}

// Submodule notes a submodule, whose content is not fetched.
func (w *Writer) Submodule(path, commit string) error {
	return w.add(node{Path: path, Submodule: commit})
}

func (w *Writer) add(n node) error {
	w.index.Nodes = append(w.index.Nodes, n)
	return nil
}

// Commit makes the snapshot durable: the index is written last.
func (w *Writer) Commit() error {
	text, err := json.Marshal(w.index)
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	if err := errors.Join(w.out.Flush(), w.file.Sync(), w.file.Close()); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(w.dir, indexName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Sync(), file.Close())
}

// Abort leaves a folder that Open refuses.
func (w *Writer) Abort() error { return w.file.Close() }
