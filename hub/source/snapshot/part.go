// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// RecordFault is the PAX record of an entry that stands for a symbolic link that
// cannot be followed; its value says why.
const RecordFault = "CONVOY.fault"

// Kind of what stands at a path.
type Kind int

// Kinds of what stands at a path. A link is what it leads to.
const (
	Absent Kind = iota
	File
	Folder
	// Fault: a link that cannot be followed, or something below a submodule or a file.
	Fault
)

// Kind says what stands at a path.
func (s *Snapshot) Kind(text string) (Kind, error) {
	clean, err := CleanPath(text)
	if err != nil {
		return Absent, err
	}
	real, err := s.resolve(clean, clean, 0)
	switch {
	case errors.Is(err, ErrPathNotFound):
		return Absent, nil
	case err != nil:
		return Fault, nil // Part tells it as such
	case s.nodes[real] != nil:
		return File, nil
	}
	return Folder, nil
}

// Part gives all files below some paths, as Tar does, none of which is below another.
// What is not there is left out. A link that cannot be followed does not end the
// stream: it is an entry that says so, for whoever reads that file.
func (s *Snapshot) Part(paths []string) (io.ReadCloser, error) {
	if err := s.visit(paths, func(Entry) error { return nil }, func(string, error) error { return nil }); err != nil {
		return nil, err
	}
	return streamed(func(w io.Writer) error {
		out := tar.NewWriter(w)
		err := s.visit(paths, func(e Entry) error { return s.add(out, e) }, func(name string, err error) error {
			return out.WriteHeader(&tar.Header{
				Typeflag: tar.TypeDir, Name: name + "/", Format: tar.FormatPAX,
				PAXRecords: map[string]string{RecordFault: err.Error()},
			})
		})
		return errors.Join(err, out.Close())
	}), nil
}

// visit walks several paths under one set of limits.
func (s *Snapshot) visit(paths []string, each func(Entry) error, fault func(string, error) error) error {
	w := &walk{s: s, each: each, fault: fault, open: map[string]bool{}}
	for _, text := range paths {
		clean, err := CleanPath(text)
		if err != nil {
			return err
		}
		real, err := s.resolve(clean, clean, 0)
		switch {
		case errors.Is(err, ErrPathNotFound):
		case err != nil:
			err = fault(clean, err)
		default:
			err = w.visit(clean, real)
		}
		if err != nil && !errors.Is(err, ErrPathNotFound) {
			return err
		}
	}
	return nil
}

// AbsentDigest is the InputDigest of a path that is not there.
const AbsentDigest = "absent"

// InputDigest is as PathDigest, for renders that may leave alone what they cannot
// read: a link that cannot be followed is part of the digest, and so is that a path
// is not there.
func (s *Snapshot) InputDigest(text string) (string, error) {
	root, err := CleanPath(text)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	there := false
	relative := func(name string) string {
		there = true
		if root == "" {
			return name
		}
		if name == root { // the path is a file: its name decides how it is read
			return path.Base(root)
		}
		return strings.TrimPrefix(name, root+"/")
	}
	err = s.visit([]string{root}, func(e Entry) error {
		_, err := fmt.Fprintf(sum, "%s %t %s %s\n", strconv.Quote(relative(e.Name)), e.Executable, e.SHA256, e.Submodule)
		return err
	}, func(name string, _ error) error {
		_, err := fmt.Fprintf(sum, "%s fault\n", strconv.Quote(relative(name)))
		return err
	})
	if err != nil {
		return "", err
	}
	if !there {
		return AbsentDigest, nil
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}
