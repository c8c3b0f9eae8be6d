// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/hub/store/memory"
	"kumodo.io/convoy/pkg/tunnel"
)

// sweep is a store with blobs of a given age and a Collector over it.
type sweep struct {
	t     *testing.T
	dir   string
	plain *store.Plain
	// releases and clusters are what is listed; failing is the error of the list, and
	// listing is called before each.
	releases []*v1alpha1.Release
	clusters []*v1alpha1.Cluster
	failing  error
	listing  func(nth int)
	listed   int
	*store.Collector
}

func newSweep(t *testing.T) *sweep {
	t.Helper()
	s := &sweep{t: t, dir: t.TempDir(), listing: func(int) {}}
	s.plain = store.NewPlain(openFile(t, s.dir))
	metrics, _ := newMetrics(t)
	s.Collector = store.NewCollector(store.CollectorOptions{
		Stores: map[string]store.Swept{"objects": s.plain}, Roots: s.roots, Interval: time.Hour, Metrics: metrics,
	})
	return s
}

func (s *sweep) roots(context.Context) (store.Roots, error) {
	s.listed++
	s.listing(s.listed)
	roots := store.Roots{}
	for _, release := range s.releases {
		roots.AddRelease(release)
	}
	for _, cluster := range s.clusters {
		roots.AddCluster(cluster)
	}
	return roots, s.failing
}

// put stores a blob that was last put so long ago, and returns its digest.
func (s *sweep) put(content string, age time.Duration) string {
	s.t.Helper()
	stored, err := s.plain.Put(s.t.Context(), strings.NewReader(content))
	if err != nil {
		s.t.Fatal(err)
	}
	s.age(stored.Digest, age)
	return stored.Digest
}

func (s *sweep) age(digest string, age time.Duration) {
	s.t.Helper()
	at := time.Now().Add(-age)
	if err := os.Chtimes(filepath.Join(s.dir, "blobs", "sha256", strings.TrimPrefix(digest, "sha256:")), at, at); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sweep) there(digest string) bool {
	s.t.Helper()
	blob, _, err := s.plain.Open(s.t.Context(), digest)
	if errors.Is(err, store.ErrNotFound) {
		return false
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if err := blob.Close(); err != nil {
		s.t.Fatal(err)
	}
	return true
}

func TestOnlyWhatNothingRefersToIsCollectedAfterADay(t *testing.T) {
	s := newSweep(t)
	const old = 30 * 24 * time.Hour
	layer := func(digest string) v1alpha1.LayerReference { return v1alpha1.LayerReference{Digest: digest, Size: 1} }
	referred := map[string]string{}
	put := func(what string) string {
		referred[what] = s.put(what, old)
		return referred[what]
	}
	objects, sealed := &tunnel.Layer{Digest: put("objects layer of the order")}, &tunnel.Layer{Digest: put("sealed layer of the order")}
	rules := &tunnel.Layer{Digest: put("health rules of the order")}
	payload, err := json.Marshal(tunnel.Order{Objects: objects, Sealed: sealed, Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	s.releases = []*v1alpha1.Release{{Status: v1alpha1.ReleaseStatus{
		RenderRef: put("renderRef"), AppliedRef: put("what the agent last reported"),
		Render: &v1alpha1.RenderStatus{Objects: layer(put("objects layer of the render")), Sealed: layer(put("sealed layer of the render"))},
		Order:  &v1alpha1.OrderStatus{Payload: string(payload)},
		History: []v1alpha1.HistoryEntry{
			{RenderRef: put("newest of the history")},
			{RenderRef: put("oldest of the history"), Sealed: layer(put("sealed layer of the history"))},
		},
	}}, {}}
	s.clusters = []*v1alpha1.Cluster{{Status: v1alpha1.ClusterStatus{UnknownReleases: []v1alpha1.UnknownRelease{{RenderRef: put("a Release that is unknown here")}}}}}
	unused, young := s.put("unused", 25*time.Hour), s.put("young", 23*time.Hour)
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for what, digest := range referred {
		if !s.there(digest) {
			t.Errorf("%s is gone", what)
		}
	}
	if s.there(unused) || !s.there(young) {
		t.Errorf("unused is there: %v, young is there: %v", s.there(unused), s.there(young))
	}
}

func TestNothingIsCollectedWhenAListFails(t *testing.T) {
	for _, nth := range []int{1, 2} {
		s := newSweep(t)
		unused := s.put("unused", 48*time.Hour)
		s.listing = func(n int) {
			if n == nth {
				s.failing = errors.New("etcd is away")
			}
		}
		if err := s.Sweep(t.Context()); err == nil {
			t.Error("no error")
		}
		if !s.there(unused) {
			t.Errorf("collected although list %d failed", nth)
		}
	}
}

func TestARenderThatIsPutAgainWhileItIsCollectedStays(t *testing.T) {
	s := newSweep(t)
	digest := s.put("made again", 48*time.Hour)
	s.listing = func(n int) {
		if n == 2 { // it is on the list of what goes
			if _, err := s.plain.Put(t.Context(), bytes.NewReader([]byte("made again"))); err != nil {
				t.Error(err)
			}
		}
	}
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !s.there(digest) {
		t.Error("it is gone")
	}
}

func TestWhatIsReferredToWhileItIsCollectedStays(t *testing.T) {
	s := newSweep(t)
	digest := s.put("adopted", 48*time.Hour)
	s.listing = func(n int) {
		if n == 2 {
			s.releases = []*v1alpha1.Release{{Status: v1alpha1.ReleaseStatus{RenderRef: digest}}}
		}
	}
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !s.there(digest) {
		t.Error("it is gone")
	}
}

func TestNothingIsCollectedSoonAfterTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics, _ := newMetrics(t)
		plain := store.NewPlain(&memory.Backend{})
		stored, err := plain.Put(t.Context(), strings.NewReader("unused"))
		if err != nil {
			t.Fatal(err)
		}
		<-time.NewTimer(48 * time.Hour).C
		c := store.NewCollector(store.CollectorOptions{
			Stores: map[string]store.Swept{"objects": plain}, Interval: time.Minute, Metrics: metrics,
			Roots: func(context.Context) (store.Roots, error) { return store.Roots{}, nil },
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		is := func() bool {
			_, _, err := plain.Open(t.Context(), stored.Digest)
			return err == nil
		}
		<-time.NewTimer(29 * time.Minute).C
		if !is() {
			t.Error("collected within half an hour of the start")
		}
		<-time.NewTimer(2 * time.Minute).C
		if is() {
			t.Error("still there after half an hour")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
