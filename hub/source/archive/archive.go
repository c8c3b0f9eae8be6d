// SPDX-License-Identifier: Apache-2.0

// Package archive unpacks archives from registries into snapshots: a part of the
// first step of the flow source -> render -> store -> deliver -> apply -> observe ->
// report.
//
// An archive is what a stranger made. Only files and folders are taken; names that
// lead out of the tree, names that stand for two things, links, devices, and more
// than the limits allow are refused, and the error has the name. Nothing of it is
// ever a path of the hub's disk.
package archive

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/snapshot"
)

// Tree is a snapshot in the making. Exactly one of Commit and Abort ends it.
type Tree struct {
	writer  *snapshot.Writer
	files   []file
	names   map[string]bool // true: a file, false: a folder
	bytes   int64
	entries int
}

type file struct {
	path       string
	executable bool
	content    snapshot.Content
}

// Create begins a tree in a folder that exists. name is the revision it has.
func Create(dir, name string) (*Tree, error) {
	writer, err := snapshot.Create(dir, name)
	if err != nil {
		return nil, err
	}
	return &Tree{writer: writer, names: map[string]bool{}}, nil
}

// Add puts one file in.
func (t *Tree) Add(name string, executable bool, data []byte) error {
	clean, err := Clean(name)
	if err != nil {
		return err
	}
	if clean == "" {
		return fault.Failf(fault.ClassInvalid, "a file without a name")
	}
	if err := t.claim(clean, true); err != nil {
		return err
	}
	if len(t.files) >= MaxFiles {
		return fault.Failf(fault.ClassTooLarge, "%s: more than %d files", fault.Clean(clean), MaxFiles)
	}
	if len(data) > MaxFileBytes {
		return tooLarge(clean)
	}
	if t.bytes += int64(len(data)); t.bytes > MaxBytes {
		return fault.Failf(fault.ClassTooLarge, "%s: the files have more than %d MiB together", fault.Clean(clean), MaxBytes>>20)
	}
	content, err := t.writer.Content(data)
	if err != nil {
		return err
	}
	t.files = append(t.files, file{path: clean, executable: executable, content: content})
	return nil
}

func tooLarge(name string) error {
	return fault.Failf(fault.ClassTooLarge, "%s: a file may have %d MiB", fault.Clean(name), MaxFileBytes>>20)
}

// claim notes a name and the folders above it. A name that is a file is given once.
func (t *Tree) claim(name string, isFile bool) error {
	if was, there := t.names[name]; there && (was || isFile) {
		return fault.Failf(fault.ClassInvalid, "%s: the name is there twice", fault.Clean(name))
	}
	t.names[name] = isFile
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		was, there := t.names[folder]
		if was {
			return fault.Failf(fault.ClassInvalid, "%s: %s is a file and a folder", fault.Clean(name), fault.Clean(folder))
		}
		if there {
			return nil
		}
		t.names[folder] = false
	}
	return nil
}

// Files and Bytes that are in the tree so far.
func (t *Tree) Files() int { return len(t.files) }

// Bytes of all files.
func (t *Tree) Bytes() int64 { return t.bytes }

// Commit makes the snapshot durable.
func (t *Tree) Commit() error {
	// A snapshot lists a folder's entries together.
	slices.SortFunc(t.files, func(a, b file) int {
		return strings.Compare(strings.ReplaceAll(a.path, "/", "\x00"), strings.ReplaceAll(b.path, "/", "\x00"))
	})
	for _, f := range t.files {
		if err := t.writer.File(f.path, f.executable, f.content); err != nil {
			return errors.Join(err, t.writer.Abort())
		}
	}
	return t.writer.Commit()
}

// Abort leaves a folder that is no snapshot.
func (t *Tree) Abort() error { return t.writer.Abort() }

// Clean brings a name of an archive to the form of a snapshot; "" is the root. It
// refuses what leads out of the tree, or would on some system.
func Clean(name string) (string, error) {
	refuse := func(why string) (string, error) {
		return "", fault.Failf(fault.ClassInvalid, "%s: %s", fault.Clean(name), why)
	}
	switch {
	case len(name) > maxPathBytes:
		return "", fault.Failf(fault.ClassTooLarge, "%s: a path of more than %d bytes", fault.Clean(name), maxPathBytes)
	case !utf8.ValidString(name):
		return refuse("a name that is no UTF-8")
	case strings.HasPrefix(name, "/"):
		return refuse("an absolute path")
	case strings.ContainsAny(name, "\\\x00"):
		return refuse("a name that a file cannot have everywhere")
	case slices.Contains(strings.Split(name, "/"), ".."):
		return refuse("a path that leads out of the archive")
	}
	clean := path.Clean(name)
	if clean == "." {
		return "", nil
	}
	if strings.Count(clean, "/") >= maxPathDepth {
		return "", fault.Failf(fault.ClassTooLarge, "%s: more than %d folders deep", fault.Clean(clean), maxPathDepth)
	}
	return clean, nil
}

// Place says where an entry of an archive goes: its name in the tree, or an error.
type Place func(name string) (string, error)

// Below puts everything into a folder; "" is the root.
func Below(folder string) Place {
	return func(name string) (string, error) { return path.Join(folder, name), nil }
}

// InFolder is for archives of charts, which hold one folder: it gets the given name,
// whatever it has in the archive.
func InFolder(folder string) Place {
	first := ""
	return func(name string) (string, error) {
		top, rest, deeper := strings.Cut(name, "/")
		if first == "" {
			first = top
		}
		if top != first {
			return "", fault.Failf(fault.ClassInvalid, "%s: an archive of a chart holds one folder, this one has %s and %s", fault.Clean(name), fault.Clean(first), fault.Clean(top))
		}
		if !deeper {
			return folder, nil
		}
		return folder + "/" + rest, nil
	}
}

// Unpack puts a tar archive packed with gzip in. It reads r to its end.
func (t *Tree) Unpack(ctx context.Context, r io.Reader, place Place) error {
	return Walk(ctx, r, func(header *tar.Header, content io.Reader) error {
		if t.entries++; t.entries > maxEntries {
			return fault.Failf(fault.ClassTooLarge, "more than %d entries", maxEntries)
		}
		name, err := Clean(header.Name)
		if err != nil || name == "" {
			return err
		}
		if name, err = place(name); err != nil {
			return err
		}
		if header.Typeflag == tar.TypeDir {
			return t.claim(name, false)
		}
		data, err := readFile(name, header.Size, content)
		if err != nil {
			return err
		}
		return t.Add(name, header.Mode&0o100 != 0, data)
	})
}

func readFile(name string, size int64, content io.Reader) ([]byte, error) {
	if size > MaxFileBytes {
		return nil, tooLarge(name)
	}
	data, err := io.ReadAll(io.LimitReader(content, MaxFileBytes+1))
	if err != nil {
		return nil, broken(err)
	}
	return data, nil
}

// Walk gives the files and folders of a packed archive, and refuses other entries.
func Walk(ctx context.Context, r io.Reader, each func(*tar.Header, io.Reader) error) error {
	packed, err := gzip.NewReader(r)
	if err != nil {
		return broken(err)
	}
	unpacked := &endpoint.Limited{R: packed, Limit: maxUnpackedBytes, What: "the archive, unpacked,"}
	in := tar.NewReader(unpacked)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return broken(err)
		}
		switch header.Typeflag {
		case tar.TypeXGlobalHeader: // of "git archive"; it says nothing about a file
			continue
		case tar.TypeReg, tar.TypeDir:
		case tar.TypeSymlink, tar.TypeLink:
			return fault.Failf(fault.ClassInvalid, "%s: a link; archives with links are not used", fault.Clean(header.Name))
		default:
			return fault.Failf(fault.ClassInvalid, "%s: neither a file nor a folder (kind %q)", fault.Clean(header.Name), header.Typeflag)
		}
		if err := each(header, in); err != nil {
			return err
		}
	}
	// What stands behind the end belongs to the bytes that a digest is of.
	if _, err := io.Copy(io.Discard, unpacked); err != nil {
		return broken(err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return broken(err)
	}
	return nil
}

// broken sorts an error that came while an archive was read.
func broken(err error) error {
	var own *fault.Error
	if errors.As(err, &own) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &fault.Error{Class: fault.ClassInvalid, Err: fmt.Errorf("not an archive of the kind tar+gzip, or a cut one: %w", err)}
}
