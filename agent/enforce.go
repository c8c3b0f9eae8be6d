// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/pkg/engine"
	"kumodo.io/convoy/pkg/tunnel"
)

// errIdentityChanged ends the agent after it joined another hub or as another
// Cluster: it starts anew as what it is now.
var errIdentityChanged = errors.New("the agent has another identity now and starts anew")

// loadRetry bounds the pause between two attempts to read the identity.
const (
	loadRetryMin = 500 * time.Millisecond
	loadRetryMax = 15 * time.Second
)

// enforcer runs the engine from the moment that there is an identity, which at the
// very first start comes through the link. It is the engine for the link, and the
// identity store too, so that it sees the identity come.
type enforcer struct {
	store link.IdentityStore
	make  func(engine.Options) (*engine.Runner, error)
	group *errgroup.Group
	log   logr.Logger

	hubNow func() time.Time // the link's idea of the hub's clock; set before Run

	mu       sync.Mutex
	ctx      context.Context // of the run; set before any use
	identity *link.Identity  // the newest that has joined; guarded by mu
	runner   *engine.Runner  // guarded by mu
	loaded   bool            // the identity was looked for; guarded by mu
}

var (
	_ link.Engine        = (*enforcer)(nil)
	_ link.Reporting     = (*enforcer)(nil)
	_ link.IdentityStore = (*enforcer)(nil)
	_ link.Holder        = (*enforcer)(nil)
	_ link.Inspector     = (*enforcer)(nil)
)

// Load implements link.IdentityStore. It goes on trying while the API server is away.
func (e *enforcer) Load(ctx context.Context) (*link.Identity, error) {
	for pause := loadRetryMin; ; pause = min(2*pause, loadRetryMax) {
		id, err := e.store.Load(ctx)
		if err == nil || errors.Is(err, link.ErrNoIdentity) {
			e.mu.Lock()
			e.loaded = true
			e.mu.Unlock()
			if err == nil {
				err = e.begin(id)
			}
			return id, err
		}
		e.log.Error(err, "identity not read, will be tried again")
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// Save implements link.IdentityStore.
func (e *enforcer) Save(ctx context.Context, id *link.Identity) error {
	if err := e.store.Save(ctx, id); err != nil {
		return err //nolint:wrapcheck // the store says what it is
	}
	return e.begin(id)
}

// begin starts the engine if it does not run yet.
func (e *enforcer) begin(id *link.Identity) error {
	if !id.Joined() {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.identity
	e.identity = id
	if e.runner != nil {
		if before.Hub != id.Hub || before.ClusterUID != id.ClusterUID {
			e.group.Go(func() error { return errIdentityChanged })
		}
		return nil
	}
	runner, err := e.make(engine.Options{HubID: id.Hub, ClusterUID: id.ClusterUID, Verify: e.verify, HubTime: e.hubNow})
	if err != nil {
		return fmt.Errorf("make the engine: %w", err)
	}
	e.runner = runner
	ctx := e.ctx
	e.group.Go(func() error { return runner.Run(ctx) })
	return nil
}

// verify checks an order read back from the cluster with the keys that are trusted,
// and those that were: it was accepted when its key was, and must not end with it.
func (e *enforcer) verify(signed tunnel.Signed) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var keys []ed25519.PublicKey
	for _, key := range slices.Concat(e.identity.OrderKeys, e.identity.FormerOrderKeys) {
		if len(key) == ed25519.PublicKeySize {
			keys = append(keys, ed25519.PublicKey(key))
		}
	}
	return tunnel.Verify(signed, tunnel.TypeOrder, keys) //nolint:wrapcheck // says what it is
}

func (e *enforcer) current() *engine.Runner {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runner
}

// errNoEngine cannot happen in a session: there is none without an identity.
var errNoEngine = errors.New("the engine does not run yet")

// Accept implements link.Engine.
func (e *enforcer) Accept(order tunnel.Order, signed tunnel.Signed) error {
	runner := e.current()
	if runner == nil {
		return errNoEngine
	}
	return runner.Accept(order, signed) //nolint:wrapcheck // a Refusal says all
}

// Head implements link.Engine.
func (e *enforcer) Head(head tunnel.Head, orders map[string]int64) {
	if runner := e.current(); runner != nil {
		runner.Head(head, orders)
	}
}

// Have implements link.Engine.
func (e *enforcer) Have() map[string]int64 {
	if runner := e.current(); runner != nil {
		return runner.Have()
	}
	return nil
}

// Acknowledged implements link.Reporting.
func (e *enforcer) Acknowledged(uid string, counter int64) {
	if runner := e.current(); runner != nil {
		runner.Acknowledged(uid, counter)
	}
}

// Refuse implements link.Reporting.
func (e *enforcer) Refuse(release tunnel.ReleaseRef, sequence int64, finding tunnel.Finding) {
	if runner := e.current(); runner != nil {
		runner.Refuse(release, sequence, finding)
	}
}

// Newest implements link.Reporting.
func (e *enforcer) Newest(uid string) (tunnel.Report, bool) {
	if runner := e.current(); runner != nil {
		return runner.Newest(uid)
	}
	return tunnel.Report{}, false
}

// Held implements link.Holder.
func (e *enforcer) Held(uids []string) []tunnel.Signed {
	if runner := e.current(); runner != nil {
		return runner.Held(uids)
	}
	return nil
}

// Layer implements link.Holder.
func (e *enforcer) Layer(ctx context.Context, digest string) (io.ReadCloser, int64, error) {
	runner := e.current()
	if runner == nil {
		return nil, 0, errNoEngine
	}
	r, size, err := runner.Layer(ctx, digest)
	if errors.Is(err, engine.ErrNotStored) {
		err = fmt.Errorf("%w: %w", link.ErrNotHeld, err)
	}
	return r, size, err
}

// Live implements link.Inspector.
func (e *enforcer) Live(ctx context.Context, uid string, view tunnel.LiveView, yield func(tunnel.LiveObject) error) (tunnel.LiveEnd, error) {
	runner := e.current()
	if runner == nil {
		return tunnel.LiveEnd{}, errNoEngine
	}
	return runner.Live(ctx, uid, view, yield) //nolint:wrapcheck // says what it is
}

// hello describes the agent and its cluster. No session
// begins before the state is read, since the hub takes what it is told to be held here
// for all of it: one that was restored from an older copy, or lost its state, would miss
// what it does not know of, and order an older render in place of what is not read yet.
func (e *enforcer) hello(ctx context.Context, agentVersion string) (tunnel.Hello, error) {
	runner := e.current()
	if runner == nil {
		return tunnel.Hello{}, errNoEngine
	}
	if err := runner.WaitLoaded(ctx); err != nil {
		return tunnel.Hello{}, err //nolint:wrapcheck // says what it is
	}
	cluster, err := runner.Describe(ctx)
	if err != nil {
		return tunnel.Hello{}, err //nolint:wrapcheck // says what was asked
	}
	return tunnel.Hello{
		AgentVersion: agentVersion, Features: engine.Features(),
		KubernetesVersion: cluster.KubernetesVersion, APIVersions: cluster.APIVersions, TargetUID: cluster.UID,
	}, nil
}

// ready says whether the agent does its work: with the hub away it does too. It
// waits for the identity to be looked for, and with one, for the state to be read.
func (e *enforcer) ready() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.loaded && (e.runner == nil || e.runner.Loaded())
}
