// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/etcd"
	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/hub/store/memory"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

const (
	prefix = "/registry/convoy"
	hubID  = "0123456789abcdef"
)

// side is a hub's stores.
type side struct {
	*Backup
	etcd     *clientv3.Client
	renders  *memory.Backend
	restored int
}

// newSide starts a real etcd of its own.
func newSide(t *testing.T) *side {
	t.Helper()
	server, err := etcd.New(etcd.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-server.Ready():
	case err := <-ended:
		ended <- nil
		t.Fatalf("etcd ended: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("etcd was not ready in time")
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}, Logger: zap.NewNop(), DialTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &side{etcd: client, renders: &memory.Backend{}}
	s.Backup, err = New(Options{
		Etcd: client, Prefix: prefix, Skip: []string{"/format"}, Renders: s.renders, HubID: hubID,
		Restored: func() { s.restored++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *side) put(t *testing.T, name, value string) {
	t.Helper()
	if _, err := s.etcd.Put(t.Context(), prefix+name, value); err != nil {
		t.Fatal(err)
	}
}

func (s *side) keys(t *testing.T) map[string]string {
	t.Helper()
	answer, err := s.etcd.Get(t.Context(), prefix+"/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, kv := range answer.Kvs {
		out[strings.TrimPrefix(string(kv.Key), prefix)] = string(kv.Value)
	}
	return out
}

func (s *side) blobs(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, folder := range []string{"sha256", "sealed"} {
		err := s.renders.List(t.Context(), folder, func(name string, _ time.Time) error {
			blob, _, err := s.renders.Open(t.Context(), name)
			if err != nil {
				return err
			}
			all, err := io.ReadAll(blob)
			out[name] = string(all)
			return errors.Join(err, blob.Close())
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// fill stores more than fits into one answer, and a blob that is longer than one.
func (s *side) fill(t *testing.T) {
	t.Helper()
	s.put(t, "/format", "1")
	for i := range 450 {
		s.put(t, fmt.Sprintf("/core.convoy.kumodo.io/releases/team/r-%03d", i), strings.Repeat("r", 4<<10))
	}
	s.put(t, "/core.convoy.kumodo.io/clusters/team/edge", "cluster")
	s.put(t, "/core.convoy.kumodo.io/releaseinventories/team/r-000", "inventory")
	s.put(t, "/source.convoy.kumodo.io/gitrepositories/team/app", "source")
	s.put(t, "/extensions.convoy.kumodo.io/healthrulesets/team/queues", "rules")
	s.put(t, "/extensions.convoy.kumodo.io/globalhealthrulesets/queues", "rules of all")
	s.put(t, "/orders/cluster-uid/release-uid", "order")
	plain := store.NewPlain(s.renders)
	sealed := store.NewSealer(s.renders, store.Keys{Current: store.Key{ID: "k"}})
	for _, blob := range []io.Reader{strings.NewReader(""), strings.NewReader("short"), bytes.NewReader(make([]byte, 5*pageBytes/2))} {
		d, err := plain.Put(t.Context(), blob)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sealed.Put(t.Context(), strings.NewReader("secret of "+d.Digest)); err != nil {
			t.Fatal(err)
		}
	}
}

// readAll gives a backup in the requests that a client makes.
func (s *side) readAll(t *testing.T) [][]v1alpha1.BackupPiece {
	t.Helper()
	var pages [][]v1alpha1.BackupPiece
	for cursor := ""; ; {
		pieces, next, err := s.Read(t.Context(), cursor)
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, piece := range pieces {
			size += len(piece.Data)
		}
		if size > 2*pageBytes {
			t.Errorf("an answer has %d bytes", size)
		}
		pages = append(pages, pieces)
		if next == "" {
			return pages
		}
		cursor = next
	}
}

func (s *side) restore(t *testing.T, pages [][]v1alpha1.BackupPiece) {
	t.Helper()
	for i, pieces := range pages {
		if err := s.Write(t.Context(), hubID, "digest", pieces, i == len(pages)-1); err != nil {
			t.Fatal(err)
		}
	}
}

func TestARestoredHubHasWhatTheBackupHad(t *testing.T) {
	from, to := newSide(t), newSide(t)
	from.fill(t)
	to.put(t, "/format", "1")
	pages := from.readAll(t)
	if len(pages) < 4 {
		t.Fatalf("the backup came in %d answers: too few to test with", len(pages))
	}
	to.restore(t, pages)
	if diff := cmp.Diff(from.keys(t), to.keys(t)); diff != "" {
		t.Errorf("keys (-backed up +restored):\n%s", diff)
	}
	if diff := cmp.Diff(from.blobs(t), to.blobs(t)); diff != "" {
		t.Errorf("blobs (-backed up +restored):\n%s", diff)
	}
	if to.restored != 1 {
		t.Errorf("the end was told %d times", to.restored)
	}
}

func TestABackupShowsEtcdAsItWasWhenItBegan(t *testing.T) {
	s := newSide(t)
	s.fill(t)
	want := s.keys(t)
	delete(want, "/format")
	got := map[string]string{}
	for cursor, first := "", true; first || cursor != ""; first = false {
		pieces, next, err := s.Read(t.Context(), cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, piece := range pieces {
			if piece.Kind == v1alpha1.BackupKey {
				got[piece.Name] = string(piece.Data)
			}
		}
		s.put(t, "/core.convoy.kumodo.io/releases/team/r-449", "changed meanwhile")
		s.put(t, "/core.convoy.kumodo.io/releases/team/zzz", "made meanwhile")
		cursor = next
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-when it began +backed up):\n%s", diff)
	}
}

func TestABackupThatEtcdHasForgottenIsBegunAgain(t *testing.T) {
	s := newSide(t)
	s.fill(t)
	// On to the keys of etcd.
	cursor := cursor{Pass: 2, Revision: 2}
	answer, err := s.etcd.Put(t.Context(), prefix+"/x", "y")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.etcd.Compact(t.Context(), answer.Header.Revision); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Read(t.Context(), cursor.String()); !errors.Is(err, ErrTooOld) {
		t.Errorf("got %v, want %v", err, ErrTooOld)
	}
}

func TestARestoreThatWasBrokenOffGoesOnWithTheSameBackupOnly(t *testing.T) {
	from, to := newSide(t), newSide(t)
	from.fill(t)
	pages := from.readAll(t)
	for _, pieces := range pages[:len(pages)-1] {
		if err := to.Write(t.Context(), hubID, "digest", pieces, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Write(t.Context(), hubID, "another", pages[0], false); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("another backup: got %v, want %v", err, ErrNotEmpty)
	}
	// The hub has written what was restored already.
	to.put(t, "/core.convoy.kumodo.io/releases/team/r-000", "newer")
	to.restore(t, pages)
	want := maps.Clone(from.keys(t))
	delete(want, "/format")
	want["/core.convoy.kumodo.io/releases/team/r-000"] = "newer"
	if diff := cmp.Diff(want, to.keys(t)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(from.blobs(t), to.blobs(t)); diff != "" {
		t.Errorf("blobs (-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeRestoredIsRefusedByName(t *testing.T) {
	busy := newSide(t)
	busy.put(t, "/core.convoy.kumodo.io/clusters/team/edge", "cluster")
	if err := busy.Write(t.Context(), hubID, "digest", nil, true); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("a hub with a Cluster: got %v, want %v", err, ErrNotEmpty)
	}
	s := newSide(t)
	if err := s.Write(t.Context(), "another", "digest", nil, false); !errors.Is(err, ErrOtherHub) {
		t.Errorf("another hub: got %v, want %v", err, ErrOtherHub)
	}
	digits := strings.Repeat("0", 64)
	for name, piece := range map[string]v1alpha1.BackupPiece{
		"a kind that is not known":              {Kind: "file", Name: "/x"},
		"a key outside the hub's prefix":        {Kind: v1alpha1.BackupKey, Name: "x"},
		"a key that the hub writes for itself":  {Kind: v1alpha1.BackupKey, Name: "/format"},
		"a blob outside the store":              {Kind: v1alpha1.BackupBlob, Name: "../" + digits},
		"a blob in another folder":              {Kind: v1alpha1.BackupBlob, Name: "other/" + digits},
		"a blob under a digest that it has not": {Kind: v1alpha1.BackupBlob, Name: "sha256/" + digits, Size: 1, Data: []byte("x")},
		"a part that nothing came before":       {Kind: v1alpha1.BackupBlob, Name: "sha256/" + digits, Offset: 5, Size: 6, Data: []byte("x")},
		"a blob that is longer than it says":    {Kind: v1alpha1.BackupBlob, Name: "sha256/" + digits, Size: 1, Data: []byte("xy")},
		"a blob that is too large":              {Kind: v1alpha1.BackupBlob, Name: "sha256/" + digits, Size: 1 << 40, Data: []byte("x")},
		"a name that is too long":               {Kind: v1alpha1.BackupKey, Name: "/" + strings.Repeat("x", maxName)},
	} {
		t.Run(name, func(t *testing.T) {
			if err := s.Write(t.Context(), hubID, "digest", []v1alpha1.BackupPiece{piece}, false); !errors.Is(err, ErrPiece) {
				t.Errorf("got %v, want %v", err, ErrPiece)
			}
		})
	}
	for _, cursor := range []string{"x", "e30K!", strings.Repeat("A", maxCursor+1), cursor{Pass: 99}.String(), cursor{Pass: -1}.String()} {
		if _, _, err := s.Read(t.Context(), cursor); !errors.Is(err, ErrCursor) {
			t.Errorf("cursor %.20q: got %v, want %v", cursor, err, ErrCursor)
		}
	}
}
