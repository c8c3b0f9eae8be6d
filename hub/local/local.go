// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/state"
	"kumodo.io/convoy/pkg/tunnel"
)

// Namespaces on targets in which the engine's state is kept. The one of an
// agentless Cluster is an agent's; the host of an inCluster one may have an agent
// of its own, for another hub.
const (
	DefaultAgentlessNamespace = "convoy-agent"
	DefaultInClusterNamespace = "convoy-in-cluster"
)

// Options of a Manager. Those without a default are required.
type Options struct {
	// HubID and OrderKeys are whose orders the engines accept.
	HubID     string
	OrderKeys func() []ed25519.PublicKey

	Clusters Clusters
	Status   Status
	Secrets  Secrets
	Orders   Orders
	Blobs    Blobs
	Reports  Reports
	// Held takes back what a restored hub has lost. May be nil.
	Held Held

	// Host reaches the cluster that the hub runs in; nil: none.
	Host *rest.Config
	// Dial connects to agentless clusters; it refuses with ErrAddress. Default: any
	// address.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Wrap sees all requests to targets. May be nil.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Resync is how often each Cluster is probed without a cause.
	Resync time.Duration
	// AgentlessNamespace and InClusterNamespace replace the defaults.
	AgentlessNamespace, InClusterNamespace string
	// Limit replaces MaxClusters.
	Limit int

	Clock      clock.WithTicker      // default: the real one
	Registerer prometheus.Registerer // default: none
}

// Manager runs an engine for each Cluster without an agent. See Run.
type Manager struct {
	// Static after New.
	opts    Options
	clock   clock.WithTicker
	metrics *metrics
	engines prometheus.Registerer
	shared  *state.Shared
	probes  chan struct{} // a place for each probe under way
	fetches chan struct{} // and each layer being read
	slots   chan struct{} // and each engine
	wake    chan struct{}

	mu     sync.Mutex
	cells  map[types.NamespacedName]*cell    // guarded by mu
	dirty  map[types.NamespacedName]struct{} // guarded by mu
	claims map[string]types.UID              // targets being served, by kube-system UID; guarded by mu
}

// New makes a Manager. It starts nothing.
func New(o Options) (*Manager, error) {
	if o.HubID == "" || o.OrderKeys == nil || o.Clusters == nil || o.Status == nil || o.Secrets == nil || o.Orders == nil || o.Blobs == nil || o.Reports == nil || o.Resync <= 0 {
		return nil, fmt.Errorf("%w: all but Held, Host, Dial, Wrap, the namespaces, Limit, Clock and Registerer are required", ErrOptions)
	}
	if o.AgentlessNamespace == "" {
		o.AgentlessNamespace = DefaultAgentlessNamespace
	}
	if o.InClusterNamespace == "" {
		o.InClusterNamespace = DefaultInClusterNamespace
	}
	if o.Limit <= 0 {
		o.Limit = MaxClusters
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	shared, err := state.NewShared()
	if err != nil {
		return nil, fmt.Errorf("local: %w", err)
	}
	m := &Manager{
		opts: o, clock: o.Clock, shared: shared, engines: o.Registerer,
		probes: make(chan struct{}, maxProbes), fetches: make(chan struct{}, maxFetches),
		slots: make(chan struct{}, o.Limit), wake: make(chan struct{}, 1),
		cells: map[types.NamespacedName]*cell{}, dirty: map[types.NamespacedName]struct{}{}, claims: map[string]types.UID{},
	}
	m.metrics = newMetrics(o.Registerer, m)
	return m, nil
}

// Mine says whether a Cluster is one for this room.
func Mine(cluster *v1alpha1.Cluster) bool {
	return cluster != nil && (cluster.Spec.ConnectionMode == v1alpha1.ConnectionModeAgentless || cluster.Spec.ConnectionMode == v1alpha1.ConnectionModeInCluster)
}

// Changed is told of each change of a Cluster in the cache. It never blocks.
func (m *Manager) Changed(old, next *v1alpha1.Cluster) {
	var key types.NamespacedName
	switch {
	case next == nil && Mine(old):
		key = types.NamespacedName{Namespace: old.Namespace, Name: old.Name}
	case !Mine(next) && !Mine(old):
		return
	case old != nil && next != nil && old.UID == next.UID && old.Generation == next.Generation && sameSecrets(old, next):
		return // we wrote that
	default:
		key = types.NamespacedName{Namespace: next.Namespace, Name: next.Name}
	}
	m.mu.Lock()
	m.dirty[key] = struct{}{}
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default: // it will look anyway
	}
}

func sameSecrets(a, b *v1alpha1.Cluster) bool {
	if len(a.Status.CheckedSecrets) != len(b.Status.CheckedSecrets) {
		return false
	}
	for i := range a.Status.CheckedSecrets {
		if a.Status.CheckedSecrets[i] != b.Status.CheckedSecrets[i] {
			return false
		}
	}
	return true
}

// Run serves until ctx ends, and returns when all that it started has ended. What
// runs on the targets stays.
func (m *Manager) Run(ctx context.Context) error {
	resync := m.clock.NewTicker(m.opts.Resync)
	defer resync.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.compare(ctx, &running, true)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.wake:
			m.compare(ctx, &running, false)
		case <-resync.C():
			m.compare(ctx, &running, true)
		}
	}
}

// compare starts and ends cells as there are Clusters: of those that changed, or of
// all. Those that stay look at their Cluster again.
func (m *Manager) compare(ctx context.Context, running *sync.WaitGroup, all bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := m.dirty
	m.dirty = map[types.NamespacedName]struct{}{}
	if all {
		for key := range m.cells {
			keys[key] = struct{}{}
		}
		for _, cluster := range m.opts.Clusters.Clusters() {
			if Mine(cluster) {
				keys[types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}] = struct{}{}
			}
		}
	}
	for key := range keys {
		cluster, ok := m.opts.Clusters.Cluster(key)
		ok = ok && Mine(cluster)
		there := m.cells[key]
		if there != nil && (!ok || there.uid != cluster.UID) {
			there.cancel()
			delete(m.cells, key)
		}
		switch {
		case !ok:
		case m.cells[key] != nil:
			there.poke()
		default:
			var before <-chan struct{}
			if there != nil {
				before = there.done
			}
			m.startLocked(ctx, running, key, cluster, before)
		}
	}
}

func (m *Manager) startLocked(ctx context.Context, running *sync.WaitGroup, key types.NamespacedName, cluster *v1alpha1.Cluster, before <-chan struct{}) {
	id := tunnel.ClusterID{Namespace: key.Namespace, Name: key.Name, UID: string(cluster.UID)}
	ctx = logr.NewContext(ctx, logr.FromContextOrDiscard(ctx).WithValues("cluster", id.String()))
	ctx, cancel := context.WithCancel(ctx)
	c := &cell{
		manager: m, key: key, uid: cluster.UID, id: id, cancel: cancel, done: make(chan struct{}),
		pokes: make(chan struct{}, 1), suspects: make(chan struct{}, 1),
	}
	m.cells[key] = c
	running.Go(func() {
		defer close(c.done)
		defer cancel()
		if before != nil {
			<-before // it was told to end
		}
		c.run(ctx)
	})
}

// claim lets one Cluster alone stand for a target. It says which other one does.
func (m *Manager) claim(target string, uid types.UID) (other types.UID, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if holder, taken := m.claims[target]; taken && holder != uid {
		return holder, false
	}
	for before, holder := range m.claims {
		if holder == uid {
			delete(m.claims, before)
		}
	}
	m.claims[target] = uid
	return "", true
}

func (m *Manager) unclaim(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for target, holder := range m.claims {
		if holder == uid {
			delete(m.claims, target)
		}
	}
}

// Occupies says whether an engine here works on the target with that kube-system
// UID.
func (m *Manager) Occupies(target string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, taken := m.claims[target]
	return taken
}

// served finds the engine of a Cluster.
func (m *Manager) served(clusterUID string) (*serving, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.cells {
		if string(c.uid) == clusterUID {
			s := c.now.Load()
			return s, s != nil
		}
	}
	return nil, false
}

// Served says whether an engine runs for a Cluster here.
func (m *Manager) Served(clusterUID string) bool {
	_, ok := m.served(clusterUID)
	return ok
}

// Newest is the newest report of a Release; nil when the engine knows nothing of
// it. ErrNotServed: there is no engine.
func (m *Manager) Newest(_ context.Context, cluster tunnel.ClusterID, release types.UID) (*tunnel.Report, error) {
	s, ok := m.served(cluster.UID)
	if !ok {
		return nil, fmt.Errorf("cluster %s: %w", cluster, ErrNotServed)
	}
	report, ok := s.runner.Newest(string(release))
	if !ok {
		return nil, nil
	}
	return &report, nil
}

// Live asks an engine how the objects of a Release are now, and calls yield for each,
// the worst first. It fails with ErrNotServed when there is no engine, and with
// tunnel.ErrNoRelease when it does not know the Release. It takes liveTimeout at most.
func (m *Manager) Live(ctx context.Context, clusterUID, releaseUID string, view tunnel.LiveView, yield func(tunnel.LiveObject) error) (tunnel.LiveEnd, error) {
	s, ok := m.served(clusterUID)
	if !ok {
		return tunnel.LiveEnd{}, fmt.Errorf("cluster %s: %w", clusterUID, ErrNotServed)
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	return s.runner.Live(ctx, releaseUID, view, yield) //nolint:wrapcheck // says what it is
}

// Fetch opens a layer that an engine holds on its target.
func (m *Manager) Fetch(ctx context.Context, clusterUID, digest string) (io.ReadCloser, error) {
	s, ok := m.served(clusterUID)
	if !ok {
		return nil, fmt.Errorf("cluster %s: %w", clusterUID, ErrNotServed)
	}
	return s.state.OpenRender(ctx, digest) //nolint:wrapcheck // names the layer
}

// count of cells and engines.
func (m *Manager) count() (cells, engines int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.cells {
		if c.now.Load() != nil {
			engines++
		}
	}
	return len(m.cells), engines
}

// Open implements engine.Blobs for one Cluster: only what an order of it names.
func (c *cell) Open(ctx context.Context, layer tunnel.Layer, _ bool, _ string) (io.ReadCloser, error) {
	m := c.manager
	allowed, sealed, ok := m.opts.Orders.Allowed(string(c.uid), layer.Digest)
	if !ok {
		return nil, fmt.Errorf("fetch %s: no order of this Cluster names that digest", layer.Digest)
	}
	select {
	case m.fetches <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	r, _, err := m.opts.Blobs.Open(ctx, allowed.Digest, sealed)
	if err != nil {
		<-m.fetches
		return nil, fmt.Errorf("fetch %s: %w", layer.Digest, err)
	}
	return &fetched{ReadCloser: r, done: func() { <-m.fetches }}, nil
}

// fetched gives its place back when it is closed.
type fetched struct {
	io.ReadCloser
	once sync.Once
	done func()
}

func (f *fetched) Close() error {
	err := f.ReadCloser.Close()
	f.once.Do(f.done)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("close layer: %w", err)
	}
	return nil
}
