// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"archive/tar"
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// RecordSubmodule is the PAX record of an entry that stands for a submodule; its
// value is the submodule's commit.
const RecordSubmodule = "CONVOY.submodule"

// PathDigest is a digest of everything below a path: names relative to it,
// contents, modes, submodules. Equal digests mean equal input for a render,
// whatever else changed in the repository.
func (s *Snapshot) PathDigest(text string) (string, error) {
	root, err := CleanPath(text)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	err = s.Walk(text, func(e Entry) error {
		name := e.Name
		if root != "" {
			name = strings.TrimPrefix(strings.TrimPrefix(name, root), "/")
			if name == "" { // the path is a file: its name decides how it is read
				name = root[strings.LastIndexByte(root, '/')+1:]
			}
		}
		// Quoted, so that no name can pretend to be another entry.
		_, err := fmt.Fprintf(sum, "%s %t %s %s\n", strconv.Quote(name), e.Executable, e.SHA256, e.Submodule)
		return err
	})
	if err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// Tar gives all files below a path, named by their paths in the repository.
// Links are followed and gone. The stream is made while it is read; an error of
// the snapshot comes out of Read.
func (s *Snapshot) Tar(text string) (io.ReadCloser, error) {
	// What is wrong with the path or its links is told before anything is sent.
	if err := s.Walk(text, func(Entry) error { return nil }); err != nil {
		return nil, err
	}
	return streamed(func(w io.Writer) error { return s.tar(text, w) }), nil
}

// streamed gives what write writes, while it is read.
func streamed(write func(io.Writer) error) io.ReadCloser {
	reader, writer := io.Pipe()
	stream := &tarStream{PipeReader: reader, done: make(chan struct{})}
	go func() { // Close waits for it
		defer close(stream.done)
		out := bufio.NewWriterSize(writer, 64<<10)
		err := write(out)
		if err == nil {
			err = out.Flush()
		}
		writer.CloseWithError(err)
	}()
	return stream
}

// tarStream ends its writer when it is closed.
type tarStream struct {
	*io.PipeReader
	done chan struct{}
}

func (t *tarStream) Close() error {
	err := t.PipeReader.Close()
	<-t.done
	return err
}

func (s *Snapshot) tar(text string, w io.Writer) error {
	out := tar.NewWriter(w)
	err := s.Walk(text, func(e Entry) error { return s.add(out, e) })
	return errors.Join(err, out.Close())
}

// add writes one entry, and checks its content on the way.
func (s *Snapshot) add(out *tar.Writer, e Entry) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: e.Name, Size: e.Size, Mode: 0o644, Format: tar.FormatPAX}
	if e.Executable {
		header.Mode = 0o755
	}
	if e.Submodule != "" {
		header.Typeflag, header.Name = tar.TypeDir, e.Name+"/"
		header.PAXRecords = map[string]string{RecordSubmodule: e.Submodule}
	}
	if err := out.WriteHeader(header); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum), io.NewSectionReader(s.content, e.Offset, e.Size))
	if err != nil {
		return err
	}
	if e.Submodule == "" && (n != e.Size || hex.EncodeToString(sum.Sum(nil)) != e.SHA256) {
		s.corrupt.Store(true)
		return fmt.Errorf("%w: %s", ErrCorrupt, e.Name)
	}
	return nil
}
