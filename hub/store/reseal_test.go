// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/hub/store/memory"
)

func TestBlobsOfAnOldKeyAreSealedAgainAndNeedItNoMore(t *testing.T) {
	backend := &memory.Backend{}
	first, second := store.Key{ID: "first", Key: [32]byte{1}}, store.Key{ID: "second", Key: [32]byte{2}}
	before := store.NewSealer(backend, store.Keys{Current: first})
	want := map[string]string{}
	for _, text := range []string{"", "a", strings.Repeat("long ", 40_000)} {
		d, err := before.Put(t.Context(), strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		want[d.Digest] = text
	}
	rotated := store.NewSealer(backend, store.Keys{Current: second, Retired: []store.Key{first}})
	counts := func() map[string]int64 {
		t.Helper()
		got, err := rotated.SealedWith(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if diff := cmp.Diff(map[string]int64{"first": 3}, counts()); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	if done, err := rotated.Reseal(t.Context()); done != 3 || err != nil {
		t.Fatalf("%d blobs were sealed again: %v", done, err)
	}
	if diff := cmp.Diff(map[string]int64{"second": 3}, counts()); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
	if done, err := rotated.Reseal(t.Context()); done != 0 || err != nil {
		t.Errorf("once more: %d blobs: %v", done, err)
	}
	alone := store.NewSealer(backend, store.Keys{Current: second})
	for digest, text := range want {
		blob, _, err := alone.Open(t.Context(), digest)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(blob)
		if err := errors.Join(err, blob.Close()); err != nil || string(got) != text {
			t.Errorf("%s reads %d bytes, want %d: %v", digest, len(got), len(text), err)
		}
	}
}

func TestABlobWhoseKeyIsLostIsNamedAndLeftWhileTheRestGoesOn(t *testing.T) {
	backend := &memory.Backend{}
	put := func(key store.Key, text string) string {
		d, err := store.NewSealer(backend, store.Keys{Current: key}).Put(t.Context(), strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return d.Digest
	}
	lost, old, current := store.Key{ID: "lost", Key: [32]byte{1}}, store.Key{ID: "old", Key: [32]byte{2}}, store.Key{ID: "current", Key: [32]byte{3}}
	gone := put(lost, "of a lost key")
	put(old, "of an old key")
	s := store.NewSealer(backend, store.Keys{Current: current, Retired: []store.Key{old}})
	done, err := s.Reseal(t.Context())
	if done != 1 || !errors.Is(err, store.ErrKeyUnknown) || !strings.Contains(err.Error(), gone) {
		t.Errorf("%d blobs were sealed again, error %v; want 1, and the lost one named", done, err)
	}
	counts, err := s.SealedWith(t.Context())
	if diff := cmp.Diff(map[string]int64{"lost": 1, "current": 1}, counts); diff != "" || err != nil {
		t.Errorf("after (-want +got): %v\n%s", err, diff)
	}
}
