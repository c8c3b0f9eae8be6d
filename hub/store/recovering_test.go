// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/hub/store/storetest"
)

// holders are the agents: what each of them sends when it is asked for a digest.
type holders struct {
	mu    sync.Mutex
	sends [][]byte
	asked int
	wait  chan struct{}
}

func (h *holders) Find(_ context.Context, _ string, _ bool, take func(io.Reader) error) error {
	h.mu.Lock()
	h.asked++
	h.mu.Unlock()
	if h.wait != nil {
		<-h.wait
	}
	var failures error
	for _, content := range h.sends {
		err := take(bytes.NewReader(content))
		if err == nil {
			return nil
		}
		failures = errors.Join(failures, err)
	}
	return errors.Join(store.ErrNotFound, failures)
}

func newMetrics(t *testing.T) (*store.Metrics, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	metrics, err := store.NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	return metrics, registry
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func TestALostBlobIsFetchedBackAndStored(t *testing.T) {
	content := storetest.Bytes(100_000)
	bad := bytes.Clone(content)
	bad[7]++
	for _, sealed := range []bool{false, true} {
		metrics, _ := newMetrics(t)
		dir := t.TempDir()
		var under store.Mended = store.NewPlain(openFile(t, dir))
		if sealed {
			under = store.NewSealer(openFile(t, dir), keys)
		}
		agents := &holders{sends: [][]byte{bad, content[:50_000], content}}
		s := metrics.Recover(under, sealed, agents)
		for range 2 {
			got, size, err := storetest.ReadAll(t.Context(), s, digestOf(content))
			if err != nil || !bytes.Equal(got, content) || size != int64(len(content)) {
				t.Errorf("sealed %v: %d bytes of %d, %v", sealed, len(got), size, err)
			}
		}
		if agents.asked != 1 {
			t.Errorf("asked %d times", agents.asked)
		}
		// What hostile holders sent is not stored.
		if found, err := filepath.Glob(filepath.Join(dir, "*", "*", "*")); err != nil || len(found) != 1 {
			t.Errorf("stored: %v, %v", found, err)
		}
	}
}

func TestABlobThatNobodyHoldsIsNotFoundAndNotAskedForAgainAtOnce(t *testing.T) {
	metrics, _ := newMetrics(t)
	agents := &holders{}
	s := metrics.Recover(store.NewPlain(openFile(t, t.TempDir())), false, agents)
	for range 20 {
		_, _, err := s.Open(t.Context(), digestOf([]byte("gone")))
		if !errors.Is(err, store.ErrLost) || !errors.Is(err, store.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	}
	if agents.asked != 1 {
		t.Errorf("asked %d times", agents.asked)
	}
}

func TestManyWhoAskForALostBlobAreOneSearch(t *testing.T) {
	content := storetest.Bytes(5_000)
	metrics, _ := newMetrics(t)
	agents := &holders{sends: [][]byte{content}, wait: make(chan struct{})}
	s := metrics.Recover(store.NewPlain(openFile(t, t.TempDir())), false, agents)
	// The first gives up before it is found; the others get it all the same.
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Open(impatient, digestOf(content)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got, _, err := storetest.ReadAll(t.Context(), s, digestOf(content)); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	close(agents.wait)
	all.Wait()
	if agents.asked > 2 {
		t.Errorf("asked %d times", agents.asked)
	}
}

func TestATornFileIsPutAsideAndFetchedBackBeforeAnybodyGetsAPartOfIt(t *testing.T) {
	content := storetest.Bytes(300_000)
	tear := map[string]func([]byte) []byte{
		"cut short":      func(b []byte) []byte { return b[:len(b)/2] },
		"cut to nothing": func([]byte) []byte { return nil },
		"a changed byte": func(b []byte) []byte { b[len(b)-3]++; return b },
	}
	for name, how := range tear {
		for _, sealed := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				metrics, registry := newMetrics(t)
				dir := t.TempDir()
				backend := openFile(t, dir)
				var under store.Mended = store.NewPlain(backend)
				if sealed {
					under = store.NewSealer(backend, keys)
				}
				stored, err := under.Put(t.Context(), bytes.NewReader(content))
				if err != nil {
					t.Fatal(err)
				}
				path := blobFile(t, dir)
				raw, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				torn := how(raw)
				if err := os.WriteFile(path, torn, 0o600); err != nil {
					t.Fatal(err)
				}
				s := metrics.Recover(under, sealed, &holders{sends: [][]byte{content}})
				got, _, err := storetest.ReadAll(t.Context(), s, stored.Digest)
				if err != nil || !bytes.Equal(got, content) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
				aside, err := filepath.Glob(filepath.Join(dir, "aside", "*"))
				if err != nil || len(aside) != 1 {
					t.Fatalf("aside: %v, %v", aside, err)
				}
				if kept, err := os.ReadFile(aside[0]); err != nil || !bytes.Equal(kept, torn) {
					t.Errorf("%d bytes are kept of the torn file, want %d, %v", len(kept), len(torn), err)
				}
				if count, err := testutil.GatherAndCount(registry, "convoy_store_torn_blobs_total"); err != nil || count != 1 {
					t.Errorf("metric: %d, %v", count, err)
				}
			})
		}
	}
}

func TestABlobThatIsTornLaterIsPutAsideWhenItIsRead(t *testing.T) {
	content := storetest.Bytes(300_000)
	metrics, _ := newMetrics(t)
	dir := t.TempDir()
	under := store.NewPlain(openFile(t, dir))
	stored, err := under.Put(t.Context(), bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	s := metrics.Recover(under, false, &holders{sends: [][]byte{content}})
	if _, _, err := storetest.ReadAll(t.Context(), s, stored.Digest); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(blobFile(t, dir), content[:1000], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := storetest.ReadAll(t.Context(), s, stored.Digest); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("the first reader got %v", err)
	}
	if got, _, err := storetest.ReadAll(t.Context(), s, stored.Digest); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the next got %d bytes, %v", len(got), err)
	}
}

func TestABlobWhoseSealingKeyIsLostIsFetchedBackAndSealedAnew(t *testing.T) {
	content := storetest.Bytes(1_000)
	metrics, _ := newMetrics(t)
	backend := openFile(t, t.TempDir())
	stored, err := store.NewSealer(backend, store.Keys{Current: store.Key{ID: "lost"}}).Put(t.Context(), bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	under := store.NewSealer(backend, keys)
	s := metrics.Recover(under, true, &holders{sends: [][]byte{content}})
	if _, _, err := storetest.ReadAll(t.Context(), s, stored.Digest); err != nil {
		t.Fatal(err)
	}
	got, _, err := storetest.ReadAll(t.Context(), under, stored.Digest)
	if diff := cmp.Diff(content, got); err != nil || diff != "" {
		t.Errorf("%v", err)
	}
}

func TestAtMostAHundredTornFilesAreKept(t *testing.T) {
	dir := t.TempDir()
	under := store.NewPlain(openFile(t, dir))
	for i := range 103 {
		stored, err := under.Put(t.Context(), bytes.NewReader([]byte{byte(i)}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := under.SetAside(t.Context(), stored.Digest); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := filepath.Glob(filepath.Join(dir, "aside", "*")); err != nil || len(kept) != 100 {
		t.Errorf("%d kept, %v", len(kept), err)
	}
}
