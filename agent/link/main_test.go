// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errOlder = errors.New("older than what is held")

// engine remembers what the link told it.
type engine struct {
	mu      sync.Mutex
	have    map[string]int64
	refused map[string]tunnel.Finding
	acked   map[string]int64
	newest  map[string]tunnel.Report
	heads   []map[string]int64
	changed chan struct{}
}

func newEngine() *engine {
	return &engine{
		have: map[string]int64{}, refused: map[string]tunnel.Finding{}, acked: map[string]int64{}, newest: map[string]tunnel.Report{},
		changed: make(chan struct{}),
	}
}

func (e *engine) change(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
	close(e.changed)
	e.changed = make(chan struct{})
}

func (e *engine) Accept(o tunnel.Order, _ tunnel.Signed) (err error) {
	e.change(func() {
		if o.Sequence < e.have[o.Release.UID] {
			err = errOlder
			return
		}
		e.have[o.Release.UID] = o.Sequence
	})
	return err
}

func (e *engine) Head(_ tunnel.Head, orders map[string]int64) {
	e.change(func() { e.heads = append(e.heads, orders) })
}

func (e *engine) Have() map[string]int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.have)
}

func (e *engine) Acknowledged(uid string, counter int64) { e.change(func() { e.acked[uid] = counter }) }

func (e *engine) Refuse(r tunnel.ReleaseRef, _ int64, f tunnel.Finding) {
	e.change(func() { e.refused[r.UID] = f })
}

func (e *engine) Newest(uid string) (tunnel.Report, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r, ok := e.newest[uid]
	return r, ok
}

func (e *engine) headCount() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.heads)
}

// wait until ok holds, which is asked under the engine's lock.
func (e *engine) wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	await(t, what, func() (bool, <-chan struct{}) {
		e.mu.Lock()
		defer e.mu.Unlock()
		return ok(), e.changed
	})
}

// patience is how long a test waits for what takes milliseconds on a machine at rest.
const patience = 2 * time.Minute

// await waits until look says so, which it asks again whenever the channel that it gave is
// closed.
func await(t *testing.T, what string, look func() (bool, <-chan struct{})) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		done, next := look()
		if done {
			return
		}
		select {
		case <-next:
		case <-deadline.C:
			t.Fatalf("%s did not happen", what)
		}
	}
}

// tokens give an agent its join token, which may be replaced.
type tokens struct {
	mu      sync.Mutex
	token   tunnel.Token
	asked   int
	changed chan struct{}
}

// tokens are given to the agent of a rig from now on: first the one it has.
func (r *rig) tokens() *tokens {
	k := &tokens{token: r.token, changed: make(chan struct{}, 1)}
	r.options.TokenChanged = k.changed
	r.options.Token = func(context.Context) (string, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.asked++
		return tunnel.EncodeToken(k.token)
	}
	return k
}

// put replaces the token, and tells.
func (k *tokens) put(next tunnel.Token) {
	k.mu.Lock()
	k.token = next
	k.mu.Unlock()
	k.changed <- struct{}{}
}

// store keeps an identity, and counts.
type store struct {
	mu    sync.Mutex
	id    *link.Identity
	saves int
	fail  error
}

func (s *store) Load(context.Context) (*link.Identity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == nil {
		return nil, link.ErrNoIdentity
	}
	return s.id, nil
}

func (s *store) Save(_ context.Context, id *link.Identity) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.id, s.saves = id, s.saves+1
	return nil
}

func (s *store) get() *link.Identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// rig is a hub with a gateway, and an agent that is not running yet.
type rig struct {
	*gatewaytest.Hub
	gateway *gateway.Gateway
	url     string
	ctx     context.Context
	stopHub func() error

	id      tunnel.ClusterID
	token   tunnel.Token
	engine  *engine
	store   *store
	options link.Options
	link    *link.Link
	dial    atomic.Pointer[dialer] // of a fake clock
}

func setUp(t *testing.T, changes ...func(*gatewaytest.Hub, *gateway.Options)) *rig {
	t.Helper()
	hub, err := gatewaytest.NewHub()
	if err != nil {
		t.Fatal(err)
	}
	o := hub.Options()
	for _, change := range changes {
		change(hub, &o)
	}
	ctx := verbose(t)
	r := &rig{Hub: hub, ctx: ctx, engine: newEngine(), store: &store{}}
	if r.gateway, r.url, r.stopHub, err = gatewaytest.Start(ctx, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.stopHub(); err != nil {
			t.Error(err)
		}
	})
	if r.id, r.token, err = hub.AddCluster("fleet", "edge-1", r.url, time.Hour); err != nil {
		t.Fatal(err)
	}
	quick := link.QuickBackoff()
	r.options = link.Options{
		Engine: r.engine, Reporting: r.engine, Identity: r.store, Backoff: &quick, Now: hub.Now,
		Token: func(context.Context) (string, error) { return tunnel.EncodeToken(r.token) },
		Hello: func(context.Context) (tunnel.Hello, error) { return tunnel.Hello{AgentVersion: "v0"}, nil },
	}
	return r
}

// verbose is a context that outlives the test's, with its log when that is wanted.
func verbose(t *testing.T) context.Context {
	ctx := context.WithoutCancel(t.Context())
	if testing.Verbose() {
		ctx = logr.NewContext(ctx, testr.New(t))
	}
	return ctx
}

// run starts the agent; it is stopped with the test, or by what is returned.
func (r *rig) run(t *testing.T) (stop func()) {
	t.Helper()
	l, err := link.New(r.options)
	if err != nil {
		t.Fatal(err)
	}
	r.link = l
	ctx, cancel := context.WithCancel(r.ctx)
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func (r *rig) order(t *testing.T, uid string, sequence int64) tunnel.Layer {
	t.Helper()
	layer := r.AddBlob([]byte("render of " + uid))
	if err := r.Order(r.id.UID, uid, sequence, &layer, nil); err != nil {
		t.Fatal(err)
	}
	return layer
}

// newRegistry gives the link's metrics to a test.
func newRegistry(o *link.Options) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	o.Registerer = registry
	return registry
}
