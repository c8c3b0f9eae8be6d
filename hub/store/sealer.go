// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Key seals blobs. Its ID is stored with each blob that it sealed.
type Key struct {
	ID  string
	Key [32]byte
}

// Keys are the key that seals and those that only open what they sealed before.
type Keys struct {
	Current Key
	Retired []Key
}

func (k Keys) find(id string) (Key, bool) {
	if k.Current.ID == id {
		return k.Current, true
	}
	for _, key := range k.Retired {
		if key.ID == id {
			return key, true
		}
	}
	return Key{}, false
}

// sealedHead is the first line of a sealed blob. It is authenticated with each chunk.
type sealedHead struct {
	Format string `json:"format"`
	KeyID  string `json:"keyID"`
	// Salt makes a key of its own for each blob, so that nonces can count from 0
	// and no number of blobs brings two chunks under the same key and nonce.
	Salt []byte `json:"salt"`
}

const (
	sealedFormat = "convoy.sealed-blob/v1"
	sealedInfo   = "convoy sealed blob v1"
	saltBytes    = 32
)

// Sealer is a Store that encrypts with AES-256-GCM in chunks of 64 KiB. The nonce
// of a chunk is its number and whether it is the last one, so that chunks cannot
// be left out, moved or cut off.
type Sealer struct {
	backend Backend
	keys    Keys
}

var (
	_ Store  = (*Sealer)(nil)
	_ Lister = (*Sealer)(nil)
)

// NewSealer makes an encrypting store on a backend. Blobs of a Plain store on the
// same backend are apart from it.
func NewSealer(backend Backend, keys Keys) *Sealer { return &Sealer{backend: backend, keys: keys} }

// Put implements Store. The digest is that of the bytes before they are sealed.
func (s *Sealer) Put(ctx context.Context, r io.Reader) (Descriptor, error) {
	pending, err := s.backend.Create(ctx)
	if err != nil {
		return Descriptor{}, err
	}
	sum := sha256.New()
	size, err := s.seal(ctx, pending, io.TeeReader(r, sum))
	if err != nil {
		return Descriptor{}, errors.Join(err, pending.Abort())
	}
	return commit(pending, folderSealed, sum, size)
}

func (s *Sealer) seal(ctx context.Context, w io.Writer, r io.Reader) (int64, error) {
	head := sealedHead{Format: sealedFormat, KeyID: s.keys.Current.ID, Salt: make([]byte, saltBytes)}
	rand.Read(head.Salt) // never fails, it ends the process instead
	line, err := json.Marshal(head)
	if err != nil {
		return 0, err
	}
	aead, err := chunkCipher(s.keys.Current, head.Salt)
	if err != nil {
		return 0, err
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return 0, err
	}
	out := &chunkWriter{w: w, aead: aead, head: line, plain: make([]byte, 0, chunkBytes)}
	size, err := copyBlob(ctx, out, r)
	if err != nil {
		return 0, err
	}
	return size, out.flush(true)
}

// Open implements Store.
func (s *Sealer) Open(ctx context.Context, digest string) (io.ReadCloser, int64, error) {
	digits, err := CheckDigest(digest)
	if err != nil {
		return nil, 0, err
	}
	blob, size, err := s.backend.Open(ctx, folderSealed+"/"+digits)
	if err != nil {
		return nil, 0, fmt.Errorf("open sealed %s: %w", digest, err)
	}
	chunks, err := s.chunks(blob, size)
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open sealed %s: %w", digest, err), blob.Close())
	}
	plain := chunks.rest - chunks.count()*int64(chunks.aead.Overhead())
	return &verifier{Reader: chunks, closer: blob, sum: sha256.New(), digits: digits}, plain, nil
}

// chunks reads the head of a sealed blob.
func (s *Sealer) chunks(blob io.Reader, size int64) (*chunkReader, error) {
	line, err := readHead(blob)
	if err != nil {
		return nil, err
	}
	var head sealedHead
	if err := json.Unmarshal(line, &head); err != nil || head.Format != sealedFormat || len(head.Salt) != saltBytes {
		return nil, fmt.Errorf("%w: its head", ErrCorrupt)
	}
	key, ok := s.keys.find(head.KeyID)
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrKeyUnknown, head.KeyID)
	}
	aead, err := chunkCipher(key, head.Salt)
	if err != nil {
		return nil, err
	}
	rest := size - int64(len(line)) - 1
	if rest < int64(aead.Overhead()) {
		return nil, fmt.Errorf("%w: it is cut", ErrCorrupt)
	}
	return &chunkReader{r: blob, aead: aead, head: line, rest: rest, sealed: make([]byte, chunkBytes+aead.Overhead())}, nil
}

// readHead reads a line byte by byte, since nothing behind it may be consumed.
func readHead(r io.Reader) ([]byte, error) {
	var line []byte
	one := make([]byte, 1)
	for len(line) < maxHeadBytes {
		if _, err := io.ReadFull(r, one); err != nil {
			return nil, fmt.Errorf("%w: its head: %w", ErrCorrupt, err)
		}
		if one[0] == '\n' {
			return line, nil
		}
		line = append(line, one[0])
	}
	return nil, fmt.Errorf("%w: its head", ErrCorrupt)
}

// Delete implements Store.
func (s *Sealer) Delete(ctx context.Context, digest string) error {
	return deleteBlob(ctx, s.backend, folderSealed, digest)
}

// DeleteBefore implements Swept.
func (s *Sealer) DeleteBefore(ctx context.Context, digest string, before time.Time) (bool, error) {
	return deleteBefore(ctx, s.backend, folderSealed, digest, before)
}

// SetAside implements Mended.
func (s *Sealer) SetAside(ctx context.Context, digest string) (string, error) {
	return setAside(ctx, s.backend, folderSealed, digest)
}

// List implements Lister.
func (s *Sealer) List(ctx context.Context, each func(Info) error) error {
	return listBlobs(ctx, s.backend, folderSealed, each)
}

func chunkCipher(key Key, salt []byte) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, key.Key[:], salt, sealedInfo, len(key.Key))
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func chunkNonce(number uint64, last bool) []byte {
	nonce := make([]byte, 12)
	binary.BigEndian.PutUint64(nonce, number)
	if last {
		nonce[11] = 1
	}
	return nonce
}

type chunkWriter struct {
	w      io.Writer
	aead   cipher.AEAD
	head   []byte
	number uint64
	plain  []byte
	sealed []byte
}

func (c *chunkWriter) Write(p []byte) (int, error) {
	written := len(p)
	for len(p) > 0 {
		if len(c.plain) == chunkBytes {
			if err := c.flush(false); err != nil {
				return 0, err
			}
		}
		n := min(chunkBytes-len(c.plain), len(p))
		c.plain = append(c.plain, p[:n]...)
		p = p[n:]
	}
	return written, nil
}

// flush seals what is buffered. Only the last chunk may be short, and there is
// always one.
func (c *chunkWriter) flush(last bool) error {
	c.sealed = c.aead.Seal(c.sealed[:0], chunkNonce(c.number, last), c.plain, c.head)
	c.number++
	c.plain = c.plain[:0]
	_, err := c.w.Write(c.sealed)
	return err
}

type chunkReader struct {
	r      io.Reader
	aead   cipher.AEAD
	head   []byte
	number uint64
	rest   int64 // sealed bytes that are still to be read
	sealed []byte
	plain  bytes.Reader
}

// count of chunks that rest is made of.
func (c *chunkReader) count() int64 {
	whole := int64(len(c.sealed))
	return (c.rest + whole - 1) / whole
}

func (c *chunkReader) Read(p []byte) (int, error) {
	for c.plain.Len() == 0 {
		if c.rest == 0 {
			return 0, io.EOF
		}
		piece := c.sealed[:min(int64(len(c.sealed)), c.rest)]
		if _, err := io.ReadFull(c.r, piece); err != nil {
			return 0, fmt.Errorf("%w: it is cut: %w", ErrCorrupt, err)
		}
		c.rest -= int64(len(piece))
		plain, err := c.aead.Open(piece[:0], chunkNonce(c.number, c.rest == 0), piece, c.head)
		if err != nil {
			return 0, fmt.Errorf("%w: chunk %d", ErrCorrupt, c.number)
		}
		c.number++
		c.plain.Reset(plain)
	}
	return c.plain.Read(p)
}
