// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kumodo.io/convoy/hub/store"
)

// Open implements store.Backend.
func (b *Backend) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	tag, _, _, err := tagOf(name)
	if err != nil {
		return nil, 0, err
	}
	found, err := b.read(ctx, tag)
	if err != nil {
		return nil, 0, explain(tag, err)
	}
	if found.gone {
		return nil, 0, store.ErrNotFound
	}
	if found.layer.Size > store.MaxStoredBytes {
		return nil, 0, fmt.Errorf("%s: %w", tag, store.ErrTooLarge)
	}
	body, err := b.repository.Blobs().Fetch(ctx, found.layer)
	if err != nil {
		return nil, 0, explain(tag, err)
	}
	return body, found.layer.Size, nil
}

// Delete implements store.Backend.
func (b *Backend) Delete(ctx context.Context, name string) error {
	tag, _, _, err := tagOf(name)
	if err != nil {
		return err
	}
	b.naming.Lock()
	defer b.naming.Unlock()
	found, err := b.read(ctx, tag)
	if notFound(err) || err == nil && found.gone {
		return nil
	}
	if err != nil {
		return explain(tag, err)
	}
	return b.remove(ctx, tag, found)
}

// DeleteBefore implements store.Backend.
func (b *Backend) DeleteBefore(ctx context.Context, name string, before time.Time) (bool, error) {
	tag, _, _, err := tagOf(name)
	if err != nil {
		return false, err
	}
	b.naming.Lock()
	defer b.naming.Unlock()
	found, err := b.read(ctx, tag)
	if notFound(err) {
		b.remember(tag, time.Time{})
		return false, nil
	}
	if err != nil {
		return false, explain(tag, err)
	}
	if b.remember(tag, found.stored); found.gone || !found.stored.Before(before) {
		return false, nil
	}
	return true, b.remove(ctx, tag, found)
}

// remove takes a blob's manifest away, and its tag with it. The bytes go when the
// registry cleans up.
func (b *Backend) remove(ctx context.Context, tag string, found artifact) error {
	err := b.repository.Manifests().Delete(ctx, found.descriptor)
	if refused(err) {
		b.metrics.refused.Inc()
		_, err = b.push(ctx, tag, ocispec.Descriptor{}, b.clock.Now(), true)
	}
	if err != nil && !notFound(err) {
		return explain(tag, err)
	}
	b.remember(tag, time.Time{})
	return nil
}

// SetAside implements store.Backend.
func (b *Backend) SetAside(ctx context.Context, name string) (string, error) {
	tag, folder, digits, err := tagOf(name)
	if err != nil {
		return "", err
	}
	b.naming.Lock()
	defer b.naming.Unlock()
	found, err := b.read(ctx, tag)
	if err != nil {
		return "", explain(tag, err)
	}
	if found.gone {
		return "", fmt.Errorf("%s: %w", tag, store.ErrNotFound)
	}
	now := b.clock.Now()
	// The newest torn blob of a name is kept.
	aside := prefixAside + folder + "-" + digits
	if _, err := b.push(ctx, aside, found.layer, now, false); err != nil {
		return "", explain(aside, err)
	}
	return b.repository.Reference.Registry + "/" + b.repository.Reference.Repository + ":" + aside, b.remove(ctx, tag, found)
}

// List implements store.Backend. Of a blob that this process has not put, the
// manifest is read once.
func (b *Backend) List(ctx context.Context, folder string, each func(name string, stored time.Time) error) error {
	prefix := prefixPlain
	switch folder {
	case folderPlain:
	case folderSealed:
		prefix = prefixSealed
	default:
		return store.ErrDigest
	}
	err := b.repository.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			digits, ok := strings.CutPrefix(tag, prefix)
			if !ok {
				continue
			}
			if _, _, _, err := tagOf(folder + "/" + digits); err != nil {
				continue // of somebody else
			}
			at, known := b.remembered(tag)
			if !known {
				found, err := b.read(ctx, tag)
				if notFound(err) {
					continue // taken away meanwhile
				}
				if err != nil {
					return explain(tag, err)
				}
				if found.gone {
					continue
				}
				at = found.stored
				b.remember(tag, at)
			}
			if err := each(folder+"/"+digits, at); err != nil {
				return err
			}
		}
		return nil
	})
	if notFound(err) {
		return nil // nothing was put yet: the repository does not exist
	}
	return err
}

// Create implements store.Backend. Blobs are written to a file first: a registry
// wants to know size and digest beforehand.
func (b *Backend) Create(ctx context.Context) (store.Pending, error) {
	file, err := os.CreateTemp(b.dir, "blob-*")
	if errors.Is(err, fs.ErrNotExist) {
		// Somebody took the folder away: it holds nothing that lasts.
		if err = os.MkdirAll(b.dir, 0o700); err == nil {
			file, err = os.CreateTemp(b.dir, "blob-*")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("render store: %w", err)
	}
	return &pending{ctx: ctx, backend: b, file: file, sum: sha256.New()}, nil
}

type pending struct {
	ctx     context.Context // of the put that this is a part of
	backend *Backend
	file    *os.File
	sum     hash.Hash
	size    int64
}

// Write implements io.Writer.
func (p *pending) Write(data []byte) (int, error) {
	n, err := p.file.Write(data)
	p.sum.Write(data[:n])
	p.size += int64(n)
	return n, err
}

// Commit implements store.Pending.
func (p *pending) Commit(name string) error {
	return errors.Join(p.commit(name), p.Abort())
}

func (p *pending) commit(name string) error {
	tag, folder, _, err := tagOf(name)
	if err != nil {
		return err
	}
	b := p.backend
	layer := layerOf(folder, digest.NewDigest(digest.SHA256, p.sum), p.size)
	b.naming.RLock()
	defer b.naming.RUnlock()
	old, err := b.read(p.ctx, tag)
	has := err == nil
	if !has && !notFound(err) && !errors.Is(err, ErrForeign) {
		return explain(tag, err)
	}
	there, err := b.repository.Blobs().Exists(p.ctx, layer)
	if err != nil {
		return explain(tag, err)
	}
	now := b.clock.Now()
	if has && there && !old.gone && old.layer.Digest == layer.Digest && now.Sub(old.stored) < refresh {
		return nil
	}
	if !there {
		// The file is ours to close, whatever the client does with what it sends.
		if err := b.repository.Blobs().Push(p.ctx, layer, io.NewSectionReader(p.file, 0, p.size)); already(err) != nil {
			return explain(tag, err)
		}
	}
	pushed, err := b.push(p.ctx, tag, layer, now, false)
	if err != nil {
		return explain(tag, err)
	}
	b.remember(tag, now)
	if !has || old.descriptor.Digest == pushed.Digest {
		return nil
	}
	// The manifest that had the tag before is of no use. It does no harm either.
	if err := b.repository.Manifests().Delete(p.ctx, old.descriptor); err != nil && !notFound(err) {
		b.metrics.refused.Inc()
	}
	return nil
}

// Abort implements store.Pending.
func (p *pending) Abort() error { return errors.Join(p.file.Close(), os.Remove(p.file.Name())) }
