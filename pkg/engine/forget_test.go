// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"kumodo.io/convoy/pkg/tunnel"
)

// slowState holds the first write of a record up, and notes what is done.
type slowState struct {
	idle
	begun, goOn chan struct{}
	first       sync.Once

	mu   sync.Mutex
	done []string
}

func (s *slowState) SaveRecord(context.Context, *Record) error {
	s.first.Do(func() {
		close(s.begun)
		<-s.goOn
	})
	s.note("saved")
	return nil
}

func (s *slowState) DeleteRecord(context.Context, string) error {
	s.note("deleted")
	return nil
}

func (s *slowState) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, what)
}

// TestARecordThatIsForgottenIsNotWrittenAgain: the hub may acknowledge that a Release is
// gone while that is still being written down.
func TestARecordThatIsForgottenIsNotWrittenAgain(t *testing.T) {
	t.Parallel()
	rn, _ := unstarted(t, time.Now())
	state := &slowState{begun: make(chan struct{}), goOn: make(chan struct{})}
	rn.state = state
	group, ctx := errgroup.WithContext(t.Context())
	rn.ctx, rn.group = ctx, group
	order := tunnel.Order{
		Verb: tunnel.VerbRemove, Hub: "hub", ClusterUID: "cluster", Sequence: rn.clock.Now().UnixMilli(),
		Release: tunnel.ReleaseRef{UID: "r", Namespace: "ns", Name: "n"}, Requires: []string{tunnel.FeatureRemove},
	}
	if err := rn.Accept(order, tunnel.Signed{}); err != nil {
		t.Fatal(err)
	}
	r := rn.releases["r"]
	r.mu.Lock()
	r.done, r.doneAt, r.counter = true, 7, 7
	r.mu.Unlock()
	saved := make(chan error, 1)
	go func() { saved <- r.save(ctx) }()
	<-state.begun
	rn.Acknowledged("r", 7)
	close(state.goOn)
	if err := <-saved; err != nil {
		t.Fatal(err)
	}
	// Another write, asked for before and come to late.
	if err := r.save(ctx); err != nil {
		t.Fatal(err)
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"saved", "deleted"}; !slices.Equal(state.done, want) {
		t.Errorf("the record was %v, want %v", state.done, want)
	}
}
