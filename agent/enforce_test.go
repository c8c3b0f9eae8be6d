// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/pkg/engine"
	"kumodo.io/convoy/pkg/tunnel"
)

// slowState is a state whose records are read when somebody lets it.
type slowState struct {
	begun, read chan struct{}
}

func (s slowState) LoadRecords(ctx context.Context, _ func(*engine.Record) error) error {
	close(s.begun)
	select {
	case <-s.read:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
func (slowState) SaveRecord(context.Context, *engine.Record) error       { return nil }
func (slowState) DeleteRecord(context.Context, string) error             { return nil }
func (slowState) PutRender(context.Context, string, io.Reader) error     { return nil }
func (slowState) RetainRenders(context.Context, func(string) bool) error { return nil }
func (slowState) OpenRender(context.Context, string) (io.ReadCloser, error) {
	return nil, engine.ErrNotStored
}
func (slowState) Open(context.Context, tunnel.Layer, bool, string) (io.ReadCloser, error) {
	return nil, engine.ErrNotStored
}

// A hub that is told a part takes it for all: what it lost besides would stay unknown to
// it, and an older order of its own would be taken for the newest.
func TestNoSessionBeginsBeforeTheStateIsRead(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	state := slowState{begun: make(chan struct{}), read: make(chan struct{})}
	e := &enforcer{ctx: ctx, group: group, log: logr.Discard()}
	e.make = func(o engine.Options) (*engine.Runner, error) {
		// Nothing answers there, so that the hello fails when it gets so far.
		o.Config, o.State, o.Blobs, o.Report = &rest.Config{Host: "https://127.0.0.1:1"}, state, state, func(tunnel.Report) {}
		return engine.New(o)
	}
	if err := e.begin(&link.Identity{Hub: "hub", ClusterUID: "cluster", Certificate: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	<-state.begun
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := e.hello(gone, "v1"); !errors.Is(err, engine.ErrNotLoaded) {
		t.Errorf("before the state is read: %v", err)
	}
	waits := make(chan error, 1)
	go func() {
		_, err := e.hello(ctx, "v1")
		waits <- err
	}()
	close(state.read)
	if err := <-waits; err == nil || errors.Is(err, engine.ErrNotLoaded) {
		t.Errorf("when the state has been read: %v", err)
	}
	cancel()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}
