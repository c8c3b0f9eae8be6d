// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// entry is one file of a layer.
type entry struct {
	size int64
	mode int64
	open func() (io.ReadCloser, error)
}

func fromBytes(content []byte) entry {
	return entry{size: int64(len(content)), mode: 0o644, open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}}
}

func fromProgram(file string) (entry, error) {
	info, err := os.Stat(file)
	if err != nil {
		return entry{}, fmt.Errorf("the program: %w", err)
	}
	return entry{size: info.Size(), mode: 0o755, open: func() (io.ReadCloser, error) { return os.Open(file) }}, nil
}

// writeTar writes files and their folders in the order of their names, all of root
// and of one time.
func writeTar(to io.Writer, files map[string]entry, created time.Time) error {
	out := tar.NewWriter(to)
	made := map[string]bool{".": true}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		var folders []string
		for folder := path.Dir(name); !made[folder]; folder = path.Dir(folder) {
			made[folder] = true
			folders = append(folders, folder)
		}
		slices.Reverse(folders)
		for _, folder := range folders {
			header := &tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755, ModTime: created, Format: tar.FormatPAX}
			if err := out.WriteHeader(header); err != nil {
				return fmt.Errorf("write layer: %w", err)
			}
		}
		if err := writeFile(out, name, files[name], created); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("write layer: %w", err)
	}
	return nil
}

func writeFile(out *tar.Writer, name string, file entry, created time.Time) (err error) {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: file.size, Mode: file.mode, ModTime: created, Format: tar.FormatPAX}
	if err := out.WriteHeader(header); err != nil {
		return fmt.Errorf("write layer: %w", err)
	}
	content, err := file.open()
	if err != nil {
		return fmt.Errorf("write layer: %w", err)
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	if _, err := io.Copy(out, content); err != nil {
		return fmt.Errorf("write layer: %s: %w", name, err)
	}
	return nil
}

// layout is a folder of blobs by digest.
type layout struct{ dir string }

func newLayout(dir string) (*layout, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("make the layout: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		return nil, fmt.Errorf("make the layout: %w", err)
	}
	return &layout{dir}, nil
}

// counter counts and hashes what goes through.
type counter struct {
	hash.Hash
	size int64
}

func newCounter() *counter { return &counter{Hash: sha256.New()} }

func (c *counter) Write(p []byte) (int, error) {
	c.size += int64(len(p))
	return c.Hash.Write(p) //nolint:wrapcheck // a hash never fails
}

func (c *counter) digest() digest.Digest { return digest.NewDigestFromBytes(digest.SHA256, c.Sum(nil)) }

// layer writes files as a compressed layer and returns it with the digest of its
// uncompressed form.
func (l *layout) layer(files map[string]entry, created time.Time) (_ v1.Descriptor, plain digest.Digest, err error) {
	temp, err := os.CreateTemp(l.dir, "layer-")
	if err != nil {
		return v1.Descriptor{}, "", fmt.Errorf("write layer: %w", err)
	}
	defer func() { err = errors.Join(err, temp.Close()) }()
	packed, unpacked := newCounter(), newCounter()
	compressed, err := gzip.NewWriterLevel(io.MultiWriter(temp, packed), gzip.BestCompression)
	if err != nil {
		return v1.Descriptor{}, "", fmt.Errorf("write layer: %w", err)
	}
	if err := writeTar(io.MultiWriter(compressed, unpacked), files, created); err != nil {
		return v1.Descriptor{}, "", err
	}
	if err := compressed.Close(); err != nil {
		return v1.Descriptor{}, "", fmt.Errorf("write layer: %w", err)
	}
	is := v1.Descriptor{MediaType: v1.MediaTypeImageLayerGzip, Digest: packed.digest(), Size: packed.size}
	if err := errors.Join(temp.Chmod(0o644), os.Rename(temp.Name(), l.path(is.Digest))); err != nil {
		return v1.Descriptor{}, "", fmt.Errorf("write layer: %w", err)
	}
	return is, unpacked.digest(), nil
}

// document writes a value as JSON and returns it.
func (l *layout) document(mediaType string, value any) (v1.Descriptor, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("write %s: %w", mediaType, err)
	}
	is := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
	if err := os.WriteFile(l.path(is.Digest), raw, 0o644); err != nil {
		return v1.Descriptor{}, fmt.Errorf("write %s: %w", mediaType, err)
	}
	return is, nil
}

func (l *layout) path(is digest.Digest) string {
	return filepath.Join(l.dir, "blobs", "sha256", is.Encoded())
}

// write writes a JSON file at the top of the layout.
func (l *layout) write(name string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(l.dir, name), raw, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// archive writes the layout as one tar.
func (l *layout) archive(to string, created time.Time) (err error) {
	files := map[string]entry{}
	root := os.DirFS(l.dir)
	add := func(name string) error {
		info, err := os.Stat(filepath.Join(l.dir, name))
		if err != nil {
			return fmt.Errorf("read the layout: %w", err)
		}
		files[name] = entry{size: info.Size(), mode: 0o644, open: func() (io.ReadCloser, error) { return root.Open(name) }}
		return nil
	}
	for _, pattern := range []string{"*", "blobs/sha256/*"} {
		names, err := filepath.Glob(filepath.Join(l.dir, pattern))
		if err != nil {
			return fmt.Errorf("read the layout: %w", err)
		}
		for _, name := range names {
			relative, err := filepath.Rel(l.dir, name)
			if err != nil {
				return fmt.Errorf("read the layout: %w", err)
			}
			if relative == "blobs" {
				continue
			}
			if err := add(filepath.ToSlash(relative)); err != nil {
				return err
			}
		}
	}
	out, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return errors.Join(writeTar(out, files, created), out.Close())
}
