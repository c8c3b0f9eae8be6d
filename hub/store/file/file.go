// SPDX-License-Identifier: Apache-2.0

// Package file is the backend of the render store that stands on a folder: the
// third step of the flow source -> render -> store -> deliver -> apply -> observe
// -> report.
//
//	DIR/blobs/sha256/<hex>   objects layers
//	DIR/blobs/sealed/<hex>   sealed layers, encrypted
//	DIR/tmp/                 what is being written
//	DIR/aside/               torn blobs, for a person to look at; the newest 100
//
// A blob is written to tmp, synced, renamed, and its folder synced: after a crash
// at any instruction it is there whole or not at all. There is no index that
// could disagree.
package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"kumodo.io/convoy/hub/store"
)

// maxAside is how many torn blobs are kept.
const maxAside = 100

// Backend keeps blobs as files.
type Backend struct {
	dir string
	// naming is held for reading while a blob gets its name, and for writing while
	// one is looked at and taken away: what is put at that moment is not lost.
	naming sync.RWMutex
	clock  clock.PassiveClock
}

var _ store.Backend = (*Backend)(nil)

// New opens the folder, makes it if need be (mode 0700), and removes what a
// crash left half written. One process at a time may have it.
func New(dir string) (*Backend, error) {
	temp := filepath.Join(dir, "tmp")
	if err := os.RemoveAll(temp); err != nil {
		return nil, fmt.Errorf("render store: %w", err)
	}
	for _, folder := range []string{temp, filepath.Join(dir, "blobs"), filepath.Join(dir, "aside")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, fmt.Errorf("render store: %w", err)
		}
	}
	return &Backend{dir: dir, clock: clock.RealClock{}}, nil
}

// Beside opens a folder that another process may have. What it gives is for reading
// only.
func Beside(dir string) (*Backend, error) {
	if _, err := os.Stat(filepath.Join(dir, "blobs")); err != nil {
		return nil, fmt.Errorf("render store: %w", err)
	}
	return &Backend{dir: dir, clock: clock.RealClock{}}, nil
}

// path of a blob. Names are made by package store; the check is a second lock.
func (b *Backend) path(name string) (string, error) {
	folder, digits, ok := strings.Cut(name, "/")
	if !ok || !plainWord(folder) || !plainWord(digits) {
		return "", fmt.Errorf("%w: %q", store.ErrDigest, name)
	}
	return filepath.Join(b.dir, "blobs", folder, digits), nil
}

func plainWord(s string) bool {
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return s != ""
}

// Create implements store.Backend.
func (b *Backend) Create(context.Context) (store.Pending, error) {
	temp := filepath.Join(b.dir, "tmp")
	f, err := os.CreateTemp(temp, "blob-*")
	if errors.Is(err, fs.ErrNotExist) {
		// Somebody emptied the folder. What was in it comes back by other ways.
		if err = os.MkdirAll(temp, 0o700); err == nil {
			f, err = os.CreateTemp(temp, "blob-*")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("render store: %w", err)
	}
	return &pending{File: f, backend: b}, nil
}

// Open implements store.Backend.
func (b *Backend) Open(_ context.Context, name string) (io.ReadCloser, int64, error) {
	path, err := b.path(name)
	if err != nil {
		return nil, 0, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, store.ErrNotFound
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// Delete implements store.Backend.
func (b *Backend) Delete(_ context.Context, name string) error {
	path, err := b.path(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// DeleteBefore implements store.Backend.
func (b *Backend) DeleteBefore(_ context.Context, name string, before time.Time) (bool, error) {
	path, err := b.path(name)
	if err != nil {
		return false, err
	}
	b.naming.Lock()
	defer b.naming.Unlock()
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !info.ModTime().Before(before) {
		return false, err
	}
	return true, os.Remove(path)
}

// SetAside implements store.Backend.
func (b *Backend) SetAside(_ context.Context, name string) (string, error) {
	path, err := b.path(name)
	if err != nil {
		return "", err
	}
	b.naming.Lock()
	defer b.naming.Unlock()
	aside := filepath.Join(b.dir, "aside")
	// Sorted by name, the oldest is the first.
	stamp := b.clock.Now().UTC().Format("20060102T150405.000000000")
	where := filepath.Join(aside, stamp+"-"+strings.ReplaceAll(name, "/", "-"))
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return "", fmt.Errorf("render store: %w", err)
	}
	if err := os.Rename(path, where); errors.Is(err, fs.ErrNotExist) {
		return "", store.ErrNotFound
	} else if err != nil {
		return "", err
	}
	if err := errors.Join(syncDir(filepath.Dir(path)), syncDir(aside)); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(aside)
	if err != nil {
		return "", err
	}
	for len(entries) > maxAside {
		if err := os.Remove(filepath.Join(aside, entries[0].Name())); err != nil {
			return "", err
		}
		entries = entries[1:]
	}
	return where, nil
}

// List implements store.Backend.
func (b *Backend) List(ctx context.Context, folder string, each func(string, time.Time) error) error {
	if !plainWord(folder) {
		return store.ErrDigest
	}
	dir, err := os.Open(filepath.Join(b.dir, "blobs", folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(list(ctx, dir, folder, each), dir.Close())
}

func list(ctx context.Context, dir *os.File, folder string, each func(string, time.Time) error) error {
	for {
		entries, err := dir.ReadDir(256)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, entry := range entries {
			info, err := entry.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // deleted meanwhile
			}
			if err != nil {
				return err
			}
			if err := each(folder+"/"+entry.Name(), info.ModTime()); err != nil {
				return err
			}
		}
	}
}

type pending struct {
	*os.File
	backend *Backend
}

// Commit implements store.Pending.
func (p *pending) Commit(name string) error {
	path, err := p.backend.path(name)
	if err == nil {
		err = p.Sync()
	}
	if err != nil {
		return errors.Join(err, p.Abort())
	}
	if err := p.Close(); err != nil {
		return errors.Join(err, os.Remove(p.Name()))
	}
	folder := filepath.Dir(path)
	p.backend.naming.RLock()
	defer p.backend.naming.RUnlock()
	if err := os.Rename(p.Name(), path); errors.Is(err, fs.ErrNotExist) {
		// The first blob of a folder.
		if err = os.MkdirAll(folder, 0o700); err == nil {
			err = errors.Join(os.Rename(p.Name(), path), syncDir(filepath.Dir(folder)))
		}
		if err != nil {
			return err
		}
	} else if err != nil {
		return errors.Join(err, os.Remove(p.Name()))
	}
	return syncDir(folder)
}

// Abort implements store.Pending.
func (p *pending) Abort() error { return errors.Join(p.Close(), os.Remove(p.Name())) }

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
