// SPDX-License-Identifier: Apache-2.0

// Package storetest holds the tests that every render store must pass: the third
// step of the flow source -> render -> store -> deliver -> apply -> observe ->
// report. Each implementation calls Run from a test of its own.
package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/iotest"

	"kumodo.io/convoy/hub/store"
)

// Store is what is tested.
type Store interface {
	store.Store
	store.Lister
}

// Bytes gives n bytes that look random and are always the same.
func Bytes(n int) []byte {
	data := make([]byte, n)
	source := rand.NewChaCha8([32]byte{1})
	// Read of ChaCha8 returns no error.
	_, _ = source.Read(data)
	return data
}

// ReadAll reads a blob to its end.
func ReadAll(ctx context.Context, s store.Store, digest string) ([]byte, int64, error) {
	blob, size, err := s.Open(ctx, digest)
	if err != nil {
		return nil, 0, err
	}
	data, err := io.ReadAll(blob)
	return data, size, errors.Join(err, blob.Close())
}

// Run runs all tests on stores that open makes, each empty.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for _, size := range []int{0, 1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20} {
		t.Run(fmt.Sprintf("a blob of %d bytes comes back as it was", size), func(t *testing.T) {
			s, want := open(t), Bytes(size)
			put, err := s.Put(t.Context(), iotest.HalfReader(bytes.NewReader(want)))
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(want)
			if put.Digest != "sha256:"+hex.EncodeToString(sum[:]) || put.Size != int64(size) {
				t.Errorf("descriptor %+v", put)
			}
			got, gotSize, err := ReadAll(t.Context(), s, put.Digest)
			if err != nil || !bytes.Equal(got, want) || gotSize != int64(size) {
				t.Errorf("read %d bytes, size %d, %v", len(got), gotSize, err)
			}
		})
	}
	t.Run("a blob that is not there is ErrNotFound", func(t *testing.T) {
		_, _, err := open(t).Open(t.Context(), "sha256:"+hex.EncodeToString(make([]byte, 32)))
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("what is no digest is ErrDigest", func(t *testing.T) {
		s := open(t)
		for _, digest := range []string{"", "sha256:", "sha256:../../etc/passwd", "md5:00", "sha256:" + string(bytes.Repeat([]byte("A"), 64))} {
			if _, _, err := s.Open(t.Context(), digest); !errors.Is(err, store.ErrDigest) {
				t.Errorf("Open %q: %v", digest, err)
			}
			if err := s.Delete(t.Context(), digest); !errors.Is(err, store.ErrDigest) {
				t.Errorf("Delete %q: %v", digest, err)
			}
		}
	})
	t.Run("a reader that fails leaves nothing", func(t *testing.T) {
		s, broken := open(t), errors.New("broken")
		_, err := s.Put(t.Context(), io.MultiReader(bytes.NewReader(Bytes(100_000)), iotest.ErrReader(broken)))
		if !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		if n := count(t, s); n != 0 {
			t.Errorf("%d blobs are there", n)
		}
	})
	t.Run("a context that ended stops a put", func(t *testing.T) {
		s := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Put(ctx, bytes.NewReader(Bytes(10))); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a deleted blob is gone, deleting it again is no error", func(t *testing.T) {
		s := open(t)
		put, err := s.Put(t.Context(), bytes.NewReader(Bytes(10)))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := s.Delete(t.Context(), put.Digest); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := s.Open(t.Context(), put.Digest); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the same bytes put by many at once are one blob", func(t *testing.T) {
		s := open(t)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				if _, err := s.Put(t.Context(), bytes.NewReader(Bytes(100_000))); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if n := count(t, s); n != 1 {
			t.Errorf("%d blobs are there", n)
		}
	})
	t.Run("a blob deleted while it is read is read to its end", func(t *testing.T) {
		s, want := open(t), Bytes(300_000)
		put, err := s.Put(t.Context(), bytes.NewReader(want))
		if err != nil {
			t.Fatal(err)
		}
		blob, _, err := s.Open(t.Context(), put.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), put.Digest); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(blob)
		if err := errors.Join(err, blob.Close()); err != nil || !bytes.Equal(got, want) {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
	})
	t.Run("the list has what was put", func(t *testing.T) {
		s, want := open(t), map[string]bool{}
		for i := range 5 {
			put, err := s.Put(t.Context(), bytes.NewReader(Bytes(i)))
			if err != nil {
				t.Fatal(err)
			}
			want[put.Digest] = true
		}
		err := s.List(t.Context(), func(info store.Info) error {
			if !want[info.Digest] || info.Stored.IsZero() {
				t.Errorf("listed %+v", info)
			}
			delete(want, info.Digest)
			return nil
		})
		if err != nil || len(want) > 0 {
			t.Errorf("not listed %v, %v", want, err)
		}
	})
}

func count(t *testing.T, s store.Lister) int {
	t.Helper()
	n := 0
	if err := s.List(t.Context(), func(store.Info) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}
