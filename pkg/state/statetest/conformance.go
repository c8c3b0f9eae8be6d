// SPDX-License-Identifier: Apache-2.0

// Package statetest holds what every engine.State must do, whatever it stands on. It
// belongs to the step apply of the flow source -> render -> store -> deliver ->
// apply -> observe -> report.
package statetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"kumodo.io/convoy/pkg/engine"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// errCut ends a stream before its time.
var errCut = errors.New("the stream was cut")

// Conformance runs all tests. open gives a State on what is kept: called again, it
// is the same one after a restart. fresh empties what is kept.
func Conformance(t *testing.T, fresh func(t *testing.T) (open func() engine.State)) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, func() engine.State){
		"a record comes back as it was saved":                       recordComesBack,
		"a saved record replaces the one before":                    recordReplaces,
		"a deleted record is gone, and may be deleted again":        recordDeleted,
		"an inventory of 10,000 objects comes back":                 largeInventory,
		"a layer comes back byte for byte":                          layerComesBack,
		"a layer of many chunks comes back after a restart":         largeLayer,
		"a layer may be put by several at once":                     sameLayerAtOnce,
		"a layer that was not put is not stored":                    unknownLayer,
		"a stream that is cut leaves nothing, and can be put again": cutLayer,
		"retain deletes what is not wanted":                         retain,
		"retain leaves a large inventory alone":                     retainInventory,
	} {
		t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
	}
}

func record(uid string, objects int) *engine.Record {
	random := rand.New(rand.NewPCG(1, uint64(objects)))
	r := &engine.Record{
		UID:     uid,
		Release: tunnel.ReleaseRef{UID: uid, Namespace: "apps", Name: "shop"},
		Order:   tunnel.Signed{Type: tunnel.TypeOrder, KeyID: "k", Payload: []byte(`{"verb":"apply"}`), Signature: []byte{1, 2, 3}},
		Applied: &engine.Render{Objects: tunnel.Layer{Digest: digest([]byte(uid)), Size: 3}, Namespace: "shop", Sequence: 7},
		Counter: 42,
	}
	for i := range objects {
		var uid [16]byte
		for j := range uid {
			uid[j] = byte(random.Uint32())
		}
		r.Inventory = append(r.Inventory, engine.Entry{
			Identity: manifest.Identity{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: fmt.Sprintf("d%d", i)},
			Version:  "v1", Line: i + 1, Digest: digest(uid[:]), Render: r.Applied.Objects.Digest,
			UID: hex.EncodeToString(uid[:]), Hash: hex.EncodeToString(uid[:8]), Created: true,
		})
	}
	return r
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func load(t *testing.T, s engine.State) map[string]*engine.Record {
	t.Helper()
	all := map[string]*engine.Record{}
	err := s.LoadRecords(t.Context(), func(r *engine.Record) error {
		all[r.UID] = r
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func save(t *testing.T, s engine.State, r *engine.Record) {
	t.Helper()
	if err := s.SaveRecord(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func recordComesBack(t *testing.T, open func() engine.State) {
	t.Helper()
	want := map[string]*engine.Record{}
	s := open()
	for _, uid := range []string{"0a8f4d5e-1111-2222-3333-444455556666", "b", "Odd UID / with things"} {
		want[uid] = record(uid, 3)
		save(t, s, want[uid])
	}
	for name, state := range map[string]engine.State{"at once": s, "after a restart": open()} {
		if diff := cmp.Diff(want, load(t, state)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func recordReplaces(t *testing.T, open func() engine.State) {
	t.Helper()
	save(t, open(), record("r", 5))
	want := record("r", 2)
	want.Done = true
	save(t, open(), want)
	if diff := cmp.Diff(map[string]*engine.Record{"r": want}, load(t, open())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func recordDeleted(t *testing.T, open func() engine.State) {
	t.Helper()
	s := open()
	save(t, s, record("r", 1))
	for range 2 {
		if err := s.DeleteRecord(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
	}
	if got := load(t, open()); len(got) != 0 {
		t.Errorf("still there: %v", got)
	}
	save(t, s, record("r", 1))
	if got := load(t, open()); len(got) != 1 {
		t.Errorf("not there again: %v", got)
	}
}

func largeInventory(t *testing.T, open func() engine.State) {
	t.Helper()
	save(t, open(), record("big", 10))
	want := record("big", manifest.MaxObjects)
	save(t, open(), want)
	if diff := cmp.Diff(want, load(t, open())["big"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	small := record("big", 1)
	save(t, open(), small)
	if diff := cmp.Diff(small, load(t, open())["big"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func put(t *testing.T, s engine.State, content []byte) string {
	t.Helper()
	d := digest(content)
	if err := s.PutRender(t.Context(), d, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	return d
}

func read(t *testing.T, s engine.State, d string) []byte {
	t.Helper()
	r, err := s.OpenRender(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return content
}

func random(n int) []byte {
	source := rand.NewChaCha8([32]byte{1, byte(n)})
	content := make([]byte, n)
	for i := range content {
		content[i] = byte(source.Uint64())
	}
	return content
}

func layerComesBack(t *testing.T, open func() engine.State) {
	t.Helper()
	for _, content := range [][]byte{[]byte("a"), bytes.Repeat([]byte("abc"), 100000), random(512 << 10), random(512<<10 - 40)} {
		s := open()
		d := put(t, s, content)
		put(t, s, content) // again: no harm
		for name, state := range map[string]engine.State{"at once": s, "after a restart": open()} {
			if !bytes.Equal(read(t, state, d), content) {
				t.Errorf("%s: %d bytes came back changed", name, len(content))
			}
		}
	}
}

func largeLayer(t *testing.T, open func() engine.State) {
	t.Helper()
	content := random(3 << 20)
	d := put(t, open(), content)
	if !bytes.Equal(read(t, open(), d), content) {
		t.Error("came back changed")
	}
}

func sameLayerAtOnce(t *testing.T, open func() engine.State) {
	s := open()
	content := random(700_000)
	d := digest(content)
	var group errgroup.Group
	for range 4 {
		group.Go(func() error { return s.PutRender(t.Context(), d, bytes.NewReader(content)) })
	}
	if err := group.Wait(); err != nil {
		t.Fatalf("Releases with one render store it at once: %v", err)
	}
	if got := read(t, s, d); !bytes.Equal(got, content) {
		t.Errorf("%d bytes came back", len(got))
	}
}

func notStored(t *testing.T, s engine.State, d string) {
	t.Helper()
	if r, err := s.OpenRender(t.Context(), d); !errors.Is(err, engine.ErrNotStored) {
		t.Errorf("opened %v, %v", r, err)
	}
}

func unknownLayer(t *testing.T, open func() engine.State) {
	t.Helper()
	notStored(t, open(), digest([]byte("never put")))
}

func cutLayer(t *testing.T, open func() engine.State) {
	t.Helper()
	content := random(2 << 20)
	d := digest(content)
	for _, at := range []int{0, 1000, 1 << 20, 2<<20 - 1} {
		s := open()
		cut := io.MultiReader(bytes.NewReader(content[:at]), failing{})
		if err := s.PutRender(t.Context(), d, cut); !errors.Is(err, errCut) {
			t.Errorf("cut at %d: %v", at, err)
		}
		notStored(t, s, d)
		notStored(t, open(), d)
	}
	if put(t, open(), content); !bytes.Equal(read(t, open(), d), content) {
		t.Error("came back changed")
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errCut }

func retain(t *testing.T, open func() engine.State) {
	t.Helper()
	s := open()
	kept, dropped := put(t, s, random(600<<10)), put(t, s, random(700<<10))
	if err := s.RetainRenders(t.Context(), func(d string) bool { return d == kept }); err != nil {
		t.Fatal(err)
	}
	for _, state := range []engine.State{s, open()} {
		notStored(t, state, dropped)
		if len(read(t, state, kept)) != 600<<10 {
			t.Error("the wanted layer is not whole")
		}
	}
	if got := put(t, s, random(700<<10)); !bytes.Equal(read(t, s, got), random(700<<10)) {
		t.Error("cannot be put again")
	}
}

func retainInventory(t *testing.T, open func() engine.State) {
	t.Helper()
	want := record("big", manifest.MaxObjects)
	save(t, open(), want)
	s := open()
	load(t, s)
	if err := s.RetainRenders(t.Context(), func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, load(t, open())["big"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
