// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"
)

// Descriptor names a blob: "sha256:<hex>" over the bytes that were put in, and
// their number.
type Descriptor struct {
	Digest string
	Size   int64
}

// Store keeps blobs under their digests.
type Store interface {
	// Put keeps all bytes of r. When it returns without an error they survive a
	// crash. Putting the same bytes again is allowed, and repairs a corrupt blob.
	Put(ctx context.Context, r io.Reader) (Descriptor, error)
	// Open gives a blob and its size. The reader returns ErrCorrupt in place of
	// io.EOF when the bytes were not those of the digest. ErrNotFound if there is
	// no such blob.
	Open(ctx context.Context, digest string) (io.ReadCloser, int64, error)
	// Delete forgets a blob; one that is not there is no error.
	Delete(ctx context.Context, digest string) error
}

// Info is one blob of a list.
type Info struct {
	Digest string
	// Stored is when it was last put.
	Stored time.Time
}

// Lister lists what a store keeps, in no order, for garbage collection. An error
// of the list or of the function ends it.
type Lister interface {
	List(ctx context.Context, each func(Info) error) error
}

// Backend keeps named blobs. A name has two parts: a folder and a hexadecimal
// digest, as in "sha256/00..ff".
type Backend interface {
	// Create begins a blob that has no name yet.
	Create(ctx context.Context) (Pending, error)
	// Open gives the bytes and their number, or ErrNotFound.
	Open(ctx context.Context, name string) (io.ReadCloser, int64, error)
	// Delete forgets a blob; one that is not there is no error.
	Delete(ctx context.Context, name string) error
	// DeleteBefore forgets a blob that was last put before a time. It says whether it
	// did: one that is put again at the same moment stays.
	DeleteBefore(ctx context.Context, name string, before time.Time) (bool, error)
	// SetAside takes a torn blob out of the store and keeps it where a person finds
	// it. It says where; one that is not there is ErrNotFound.
	SetAside(ctx context.Context, name string) (where string, err error)
	// List calls each for all blobs of a folder.
	List(ctx context.Context, folder string, each func(name string, stored time.Time) error) error
}

// Pending is a blob that is being written. Exactly one of Commit and Abort ends it.
type Pending interface {
	io.Writer
	// Commit makes the blob durable under its name, in place of one that may be there.
	Commit(name string) error
	// Abort leaves nothing behind.
	Abort() error
}

// Folders of a backend.
const (
	folderPlain  = "sha256"
	folderSealed = "sealed"
)

const digestPrefix = "sha256:"

// CheckDigest gives the hexadecimal digits of a digest.
func CheckDigest(digest string) (string, error) {
	digits, ok := strings.CutPrefix(digest, digestPrefix)
	if !ok || len(digits) != 2*sha256.Size {
		return "", ErrDigest
	}
	for _, c := range digits {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", ErrDigest
		}
	}
	return digits, nil
}

// Plain is a Store that keeps bytes as they are.
type Plain struct{ backend Backend }

var (
	_ Store  = (*Plain)(nil)
	_ Lister = (*Plain)(nil)
)

// NewPlain makes a store on a backend.
func NewPlain(backend Backend) *Plain { return &Plain{backend: backend} }

// Put implements Store.
func (p *Plain) Put(ctx context.Context, r io.Reader) (Descriptor, error) {
	pending, err := p.backend.Create(ctx)
	if err != nil {
		return Descriptor{}, err
	}
	sum := sha256.New()
	size, err := copyBlob(ctx, io.MultiWriter(pending, sum), r)
	if err != nil {
		return Descriptor{}, errors.Join(err, pending.Abort())
	}
	return commit(pending, folderPlain, sum, size)
}

// Open implements Store.
func (p *Plain) Open(ctx context.Context, digest string) (io.ReadCloser, int64, error) {
	digits, err := CheckDigest(digest)
	if err != nil {
		return nil, 0, err
	}
	blob, size, err := p.backend.Open(ctx, folderPlain+"/"+digits)
	if err != nil {
		return nil, 0, fmt.Errorf("open %s: %w", digest, err)
	}
	return &verifier{Reader: blob, closer: blob, sum: sha256.New(), digits: digits}, size, nil
}

// Delete implements Store.
func (p *Plain) Delete(ctx context.Context, digest string) error {
	return deleteBlob(ctx, p.backend, folderPlain, digest)
}

// DeleteBefore implements Swept.
func (p *Plain) DeleteBefore(ctx context.Context, digest string, before time.Time) (bool, error) {
	return deleteBefore(ctx, p.backend, folderPlain, digest, before)
}

// SetAside implements Mended.
func (p *Plain) SetAside(ctx context.Context, digest string) (string, error) {
	return setAside(ctx, p.backend, folderPlain, digest)
}

// List implements Lister.
func (p *Plain) List(ctx context.Context, each func(Info) error) error {
	return listBlobs(ctx, p.backend, folderPlain, each)
}

func deleteBlob(ctx context.Context, backend Backend, folder, digest string) error {
	digits, err := CheckDigest(digest)
	if err != nil {
		return err
	}
	return backend.Delete(ctx, folder+"/"+digits)
}

func deleteBefore(ctx context.Context, backend Backend, folder, digest string, before time.Time) (bool, error) {
	digits, err := CheckDigest(digest)
	if err != nil {
		return false, err
	}
	return backend.DeleteBefore(ctx, folder+"/"+digits, before)
}

func setAside(ctx context.Context, backend Backend, folder, digest string) (string, error) {
	digits, err := CheckDigest(digest)
	if err != nil {
		return "", err
	}
	return backend.SetAside(ctx, folder+"/"+digits)
}

func listBlobs(ctx context.Context, backend Backend, folder string, each func(Info) error) error {
	return backend.List(ctx, folder, func(name string, stored time.Time) error {
		return each(Info{Digest: digestPrefix + strings.TrimPrefix(name, folder+"/"), Stored: stored})
	})
}

// commit names the blob by what was hashed.
func commit(pending Pending, folder string, sum hash.Hash, size int64) (Descriptor, error) {
	digits := hex.EncodeToString(sum.Sum(nil))
	if err := pending.Commit(folder + "/" + digits); err != nil {
		return Descriptor{}, fmt.Errorf("store sha256:%s: %w", digits, err)
	}
	return Descriptor{Digest: digestPrefix + digits, Size: size}, nil
}

// copyBlob copies up to the limit and stops when the context ends.
func copyBlob(ctx context.Context, w io.Writer, r io.Reader) (int64, error) {
	size, err := io.Copy(w, io.LimitReader(&contextReader{ctx: ctx, r: r}, MaxBlobBytes+1))
	if err == nil && size > MaxBlobBytes {
		err = ErrTooLarge
	}
	return size, err
}

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// verifier hashes what is read and turns a wrong end into ErrCorrupt.
type verifier struct {
	io.Reader
	closer io.Closer
	sum    hash.Hash
	digits string
}

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.Reader.Read(p)
	v.sum.Write(p[:n])
	if errors.Is(err, io.EOF) && hex.EncodeToString(v.sum.Sum(nil)) != v.digits {
		err = fmt.Errorf("%w: sha256:%s", ErrCorrupt, v.digits)
	}
	return n, err
}

func (v *verifier) Close() error { return v.closer.Close() }
