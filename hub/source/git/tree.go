// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/snapshot"
)

// extract writes the tree of a commit as a snapshot.
func extract(p *pack, commit plumbing.Hash, dir string) (files int, bytes int64, err error) {
	root, err := rootTree(p, commit)
	if err != nil {
		return 0, 0, err
	}
	writer, err := snapshot.Create(dir, commit.String())
	if err != nil {
		return 0, 0, err
	}
	w := &walker{pack: p, out: writer, blobs: map[plumbing.Hash]snapshot.Content{}}
	if err := w.tree(root, "", 0); err != nil {
		return 0, 0, errors.Join(err, writer.Abort())
	}
	return w.files, w.bytes, writer.Commit()
}

// rootTree gives the tree of a commit, or of the commit that a tag object names.
func rootTree(p *pack, commit plumbing.Hash) (plumbing.Hash, error) {
	content, err := p.get(commit, plumbing.CommitObject, maxTreeBytes)
	if errors.Is(err, errNoObject) {
		return plumbing.ZeroHash, fault.Failf(fault.ClassNotFound, "commit %s is not in the repository, or no branch and no tag leads to it any more", commit)
	}
	if err != nil {
		return plumbing.ZeroHash, wrapObject("commit "+commit.String(), err)
	}
	line, _, _ := strings.Cut(string(content), "\n")
	tree, ok := strings.CutPrefix(line, "tree ")
	if !ok || !IsCommit(tree) {
		return plumbing.ZeroHash, broken(errors.New("a commit without a tree"))
	}
	return plumbing.NewHash(tree), nil
}

func wrapObject(what string, err error) error {
	var own *fault.Error
	switch {
	case errors.As(err, &own):
		return &fault.Error{Class: own.Class, Err: fmt.Errorf("%s: %w", what, err)}
	case errors.Is(err, errHuge):
		return &fault.Error{Class: fault.ClassTooLarge, Err: fmt.Errorf("%s: %w", what, err)}
	default:
		return &fault.Error{Class: fault.ClassUnreachable, Err: fmt.Errorf("%s: %w", what, err)}
	}
}

// walker goes through the trees of one commit.
type walker struct {
	pack    *pack
	out     *snapshot.Writer
	blobs   map[plumbing.Hash]snapshot.Content
	entries int
	files   int
	bytes   int64
}

func (w *walker) tree(hash plumbing.Hash, prefix string, depth int) error {
	name := strings.TrimSuffix(prefix, "/")
	if depth > maxPathDepth {
		return fault.Failf(fault.ClassTooLarge, "%s: more than %d folders deep", fault.Clean(name), maxPathDepth)
	}
	content, err := w.pack.get(hash, plumbing.TreeObject, maxTreeBytes)
	if err != nil {
		return wrapObject("folder "+fault.Clean("/"+name), err)
	}
	memory := &plumbing.MemoryObject{}
	memory.SetType(plumbing.TreeObject)
	if _, err := memory.Write(content); err != nil {
		return err
	}
	var tree object.Tree
	if err := tree.Decode(memory); err != nil {
		return wrapObject("folder "+fault.Clean("/"+name), broken(err))
	}
	for _, entry := range tree.Entries {
		if w.entries++; w.entries > maxTreeEntries {
			return fault.Failf(fault.ClassTooLarge, "the tree has more than %d files and folders", maxTreeEntries)
		}
		path := prefix + entry.Name
		if err := checkName(entry.Name, path); err != nil {
			return err
		}
		if entry.Mode == filemode.Dir {
			err = w.tree(entry.Hash, path+"/", depth+1)
		} else {
			err = w.file(entry, path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkName refuses names that Git itself would not check out.
func checkName(name, path string) error {
	if len(path) > maxPathBytes {
		return fault.Failf(fault.ClassTooLarge, "%s: a path of more than %d bytes", fault.Clean(path), maxPathBytes)
	}
	if name == "" || name == "." || name == ".." || strings.EqualFold(name, ".git") || strings.ContainsAny(name, "/\\\x00") {
		return fault.Failf(fault.ClassInvalid, "%s: a name that a repository cannot have", fault.Clean(path))
	}
	return nil
}

func (w *walker) file(entry object.TreeEntry, path string) error {
	if w.files++; w.files > MaxFiles {
		return fault.Failf(fault.ClassTooLarge, "%s: the repository has more than %d files", fault.Clean(path), MaxFiles)
	}
	switch entry.Mode {
	case filemode.Submodule:
		return w.out.Submodule(path, entry.Hash.String())
	case filemode.Symlink:
		target, err := w.pack.get(entry.Hash, plumbing.BlobObject, maxLinkBytes)
		if err != nil {
			return wrapObject(fault.Clean(path), err)
		}
		return w.out.Symlink(path, string(target))
	case filemode.Regular, filemode.Executable, filemode.Deprecated:
	default:
		return fault.Failf(fault.ClassInvalid, "%s: a kind of file (%o) that is not supported", fault.Clean(path), uint32(entry.Mode))
	}
	size := w.pack.size(entry.Hash)
	if w.bytes += size; w.bytes > MaxSnapshotBytes && size <= MaxFileBytes {
		return fault.Failf(fault.ClassTooLarge, "%s: the files of the repository have more than %d MiB together", fault.Clean(path), MaxSnapshotBytes>>20)
	}
	stored, there := w.blobs[entry.Hash]
	if !there {
		content, err := w.pack.get(entry.Hash, plumbing.BlobObject, MaxFileBytes)
		if errors.Is(err, errHuge) {
			return fault.Failf(fault.ClassTooLarge, "%s: %w; a file may have %d MiB", fault.Clean(path), err, MaxFileBytes>>20)
		}
		if err != nil {
			return wrapObject(fault.Clean(path), err)
		}
		if stored, err = w.out.Content(content); err != nil {
			return err
		}
		w.blobs[entry.Hash] = stored
	}
	return w.out.File(path, entry.Mode == filemode.Executable, stored)
}
