// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/hub/store/file"
	"kumodo.io/convoy/hub/store/memory"
	"kumodo.io/convoy/hub/store/storetest"
)

var keys = store.Keys{Current: store.Key{ID: "k2", Key: [32]byte{2}}, Retired: []store.Key{{ID: "k1", Key: [32]byte{1}}}}

func openFile(t *testing.T, dir string) *file.Backend {
	t.Helper()
	backend, err := file.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	return backend
}

func TestConformance(t *testing.T) {
	t.Run("plain in files", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Store { return store.NewPlain(openFile(t, t.TempDir())) })
	})
	t.Run("plain in memory", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Store { return store.NewPlain(&memory.Backend{}) })
	})
	t.Run("sealed in files", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Store { return store.NewSealer(openFile(t, t.TempDir()), keys) })
	})
	t.Run("sealed in memory", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Store { return store.NewSealer(&memory.Backend{}, keys) })
	})
}

// blobFile is the one blob file under a folder.
func blobFile(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "blobs", "*", "*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("found %v, %v", found, err)
	}
	return found[0]
}

func TestAnyChangedBitOfAStoredBlobIsCorruptAndPuttingItAgainRepairsIt(t *testing.T) {
	content := storetest.Bytes(150_000)
	stores := map[string]func(store.Backend) store.Store{
		"plain":  func(b store.Backend) store.Store { return store.NewPlain(b) },
		"sealed": func(b store.Backend) store.Store { return store.NewSealer(b, keys) },
	}
	for name, make := range stores {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := make(openFile(t, dir))
			put, err := s.Put(t.Context(), bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			path := blobFile(t, dir)
			good, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			damage := map[string][]byte{"cut by one byte": good[:len(good)-1], "cut at a chunk": good[:len(good)-(150_000-128<<10)-16], "longer": append(good[:len(good):len(good)], 0), "empty": {}}
			for _, at := range []int{0, 20, 200, 70_000, len(good) - 1} {
				changed := bytes.Clone(good)
				changed[at] ^= 1
				damage["a bit at "+string(rune('a'+len(damage)))] = changed
			}
			for what, bytes := range damage {
				if err := os.WriteFile(path, bytes, 0o600); err != nil {
					t.Fatal(err)
				}
				_, _, err := storetest.ReadAll(t.Context(), s, put.Digest)
				if !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrKeyUnknown) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if _, err := s.Put(t.Context(), bytes.NewReader(content)); err != nil {
				t.Fatal(err)
			}
			if got, _, err := storetest.ReadAll(t.Context(), s, put.Digest); err != nil || !bytes.Equal(got, content) {
				t.Errorf("after putting it again: %v", err)
			}
		})
	}
}

func TestSealedBlobsShowNothingAndOpenWithRetiredKeys(t *testing.T) {
	dir := t.TempDir()
	backend := openFile(t, dir)
	secret := []byte(strings.Repeat("hunter2 ", 1000))
	put, err := store.NewSealer(backend, store.Keys{Current: keys.Retired[0]}).Put(t.Context(), bytes.NewReader(secret))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := os.ReadFile(blobFile(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(stored, []byte("hunter2")) || !bytes.Contains(stored, []byte(`"keyID":"k1"`)) {
		t.Errorf("stored: %.200q", stored)
	}
	if got, _, err := storetest.ReadAll(t.Context(), store.NewSealer(backend, keys), put.Digest); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("with the key retired: %v", err)
	}
	if _, _, err := storetest.ReadAll(t.Context(), store.NewSealer(backend, store.Keys{Current: keys.Current}), put.Digest); !errors.Is(err, store.ErrKeyUnknown) {
		t.Errorf("without the key: %v", err)
	}
	if _, _, err := store.NewPlain(backend).Open(t.Context(), put.Digest); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("through the plain store: %v", err)
	}
	again, err := store.NewSealer(backend, keys).Put(t.Context(), bytes.NewReader(secret))
	if err != nil || again != put {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestAStoreOpensAfterACrashInTheMiddleOfAPut(t *testing.T) {
	dir := t.TempDir()
	backend := openFile(t, dir)
	whole, err := store.NewPlain(backend).Put(t.Context(), bytes.NewReader(storetest.Bytes(1000)))
	if err != nil {
		t.Fatal(err)
	}
	torn, err := backend.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := torn.Write(storetest.Bytes(500)); err != nil {
		t.Fatal(err)
	}
	// Nothing ends the pending blob: the process is gone.
	s := store.NewPlain(openFile(t, dir))
	if got, _, err := storetest.ReadAll(t.Context(), s, whole.Digest); err != nil || len(got) != 1000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	left, err := os.ReadDir(filepath.Join(dir, "tmp"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestABlobBeyondTheLimitIsRefused(t *testing.T) {
	dir := t.TempDir()
	_, err := store.NewPlain(openFile(t, dir)).Put(t.Context(), io.LimitReader(zeros{}, store.MaxBlobBytes+1))
	if !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "tmp")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestMetricsTellLayersAndFailures(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	metrics, err := store.NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	s := metrics.Instrument(store.NewPlain(&memory.Backend{}), "objects")
	put, err := s.Put(t.Context(), strings.NewReader("four"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := storetest.ReadAll(t.Context(), s, put.Digest); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), put.Digest); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Open(t.Context(), put.Digest); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	want := `
# HELP convoy_store_failures_total Operations that failed, by reason: NotFound, Corrupt, Other.
# TYPE convoy_store_failures_total counter
convoy_store_failures_total{layer="objects",reason="NotFound"} 1
# HELP convoy_store_put_bytes_total Bytes of renders stored.
# TYPE convoy_store_put_bytes_total counter
convoy_store_put_bytes_total{layer="objects"} 4
# HELP convoy_store_read_bytes_total Bytes of renders read.
# TYPE convoy_store_read_bytes_total counter
convoy_store_read_bytes_total{layer="objects"} 4
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "convoy_store_failures_total", "convoy_store_put_bytes_total", "convoy_store_read_bytes_total"); err != nil {
		t.Error(err)
	}
}

func BenchmarkPutFile1MiB(b *testing.B) {
	backend, err := file.New(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	s, data := store.NewPlain(backend), storetest.Bytes(1<<20)
	b.SetBytes(1 << 20)
	for b.Loop() {
		if _, err := s.Put(b.Context(), bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAFolderThatWasEmptiedWhileTheHubRunsTakesRendersAgain(t *testing.T) {
	content := storetest.Bytes(1000)
	for name, open := range map[string]func(*file.Backend) store.Store{
		"plain":  func(b *file.Backend) store.Store { return store.NewPlain(b) },
		"sealed": func(b *file.Backend) store.Store { return store.NewSealer(b, keys) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "renders")
			s := open(openFile(t, dir))
			put, err := s.Put(t.Context(), bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if _, _, err := storetest.ReadAll(t.Context(), s, put.Digest); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("what was taken away gives %v, want that it is not found", err)
			}
			again, err := s.Put(t.Context(), bytes.NewReader(content))
			if err != nil {
				t.Fatalf("the render cannot be put again: %v", err)
			}
			if got, _, err := storetest.ReadAll(t.Context(), s, again.Digest); err != nil || !bytes.Equal(got, content) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
			// A torn one is set aside there as before, and named as torn.
			if err := os.RemoveAll(filepath.Join(dir, "aside")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(blobFile(t, dir), []byte("torn"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := storetest.ReadAll(t.Context(), s, again.Digest); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("a torn blob gives %v, want that it is corrupt", err)
			}
		})
	}
}
