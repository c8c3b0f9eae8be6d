// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"sync"
	"testing"
	"time"

	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestAnAgentJoinsAndKeepsItsIdentityOverARestart(t *testing.T) {
	r := setUp(t)
	r.order(t, "a", 1)
	stop := r.run(t)
	r.engine.wait(t, "the first order", func() bool { return r.engine.have["a"] == 1 })
	stop()
	id := r.store.get()
	if !id.Joined() || id.ClusterUID != r.id.UID || id.Hub != r.ID || len(id.OrderKeys) != 1 {
		t.Fatalf("kept %+v", id)
	}
	// The token is used up; the agent does not need it any more.
	r.options.Token = func(context.Context) (string, error) { return "", nil }
	r.order(t, "a", 2)
	r.run(t)
	r.engine.wait(t, "the second order", func() bool { return r.engine.have["a"] == 2 })
	if got := r.store.get(); !bytes.Equal(got.Certificate, id.Certificate) {
		t.Error("joined anew")
	}
}

func TestAJoinWhoseAnswerWasLostIsRepeatedWithTheSameKeys(t *testing.T) {
	r := setUp(t)
	// The hub answers, and the agent dies before it can write that down.
	lost := errors.New("the agent was killed")
	first := &saveOnce{store: r.store, then: lost}
	r.options.Identity = first
	stop := r.run(t)
	first.wait(t)
	stop()
	if r.store.get().Joined() {
		t.Fatal("the first join was not lost")
	}
	r.options.Identity = r.store
	r.order(t, "a", 1)
	r.run(t)
	r.engine.wait(t, "an order", func() bool { return r.engine.have["a"] == 1 })
}

// saveOnce lets the first save through and fails the others.
type saveOnce struct {
	*store
	then error
	once sync.Once
	hit  chan struct{}
	init sync.Once
}

func (s *saveOnce) ch() chan struct{} {
	s.init.Do(func() { s.hit = make(chan struct{}) })
	return s.hit
}

func (s *saveOnce) Save(ctx context.Context, id *link.Identity) error {
	if !id.Joined() {
		return s.store.Save(ctx, id)
	}
	ch := s.ch()
	s.once.Do(func() { close(ch) })
	return s.then
}

func (s *saveOnce) wait(t *testing.T) {
	t.Helper()
	select {
	case <-s.ch():
	case <-time.After(patience):
		t.Fatal("nothing was saved")
	}
}

func TestAnAgentThatIsRefusedAsksAgainSlowlyUntilANewTokenComes(t *testing.T) {
	r := setUp(t)
	slow := link.QuickBackoff()
	slow.RefusedMin, slow.RefusedMax = time.Hour, 2*time.Hour
	r.options.Backoff = &slow
	used := r.token
	other, err := r.NewPeer(used)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Join(r.ctx, false); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	asked := 0
	token := used
	r.options.Token = func(context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		return tunnel.EncodeToken(token)
	}
	r.run(t)
	again := func() int { mu.Lock(); defer mu.Unlock(); return asked }
	for again() < 2 {
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	next, err := r.NewToken(r.id, r.url, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	token = next
	mu.Unlock()
	r.order(t, "a", 1)
	r.engine.wait(t, "an order after the new token", func() bool { return r.engine.have["a"] == 1 })
}

func TestANewTokenForAnotherClusterObjectReplacesTheIdentity(t *testing.T) {
	r := setUp(t)
	stop := r.run(t)
	r.engine.wait(t, "a head", func() bool { return len(r.engine.heads) > 0 })
	stop()
	r.DeleteCluster(r.id.UID)
	id, token, err := r.AddCluster("fleet", "edge-1", r.url, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	r.id, r.token = id, token
	r.order(t, "a", 1)
	r.run(t)
	r.engine.wait(t, "an order of the new Cluster", func() bool { return r.engine.have["a"] == 1 })
	if got := r.store.get(); got.ClusterUID != id.UID || got.Next != nil {
		t.Errorf("kept %+v", got)
	}
}

func TestATokenThatIsNoGoodDoesNotEndAnIdentity(t *testing.T) {
	r := setUp(t)
	stop := r.run(t)
	r.engine.wait(t, "a head", func() bool { return len(r.engine.heads) > 0 })
	stop()
	r.token.Seed = bytes.Repeat([]byte{9}, ed25519.SeedSize) // the hub knows nothing of it
	r.order(t, "a", 1)
	r.run(t)
	r.engine.wait(t, "an order", func() bool { return r.engine.have["a"] == 1 })
}
