// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/source/address"
	"kumodo.io/convoy/hub/source/snapshot"
	"kumodo.io/convoy/hub/worker"
)

// Snapshot is the tree of one revision.
type Snapshot = snapshot.Snapshot

// Options of a Coordinator.
type Options struct {
	// CacheDir is the folder of the snapshots; made if need be. One process has it.
	CacheDir string
	// CacheBytes of snapshots on disk; 0 means 2 GiB.
	CacheBytes int64
	// Allow opens address ranges that are denied otherwise (--source-allow-cidr),
	// also for http. Deny closes more: the host's Services.
	Allow, Deny []netip.Prefix
	// Proxy that https goes through.
	Proxy address.Proxy
	// Secrets of the host cluster.
	Secrets SecretGetter
	// Registries of a namespace: their credentials are for the dependencies of charts
	// that come from the same host. Nil: there are none.
	Registries func(namespace string) []v1alpha1.Source
	// Worker is the program of the fetch worker; the zero value is the running one.
	Worker worker.Command
	// Clock is the real one by default.
	Clock clock.PassiveClock
	// Registerer of metrics; nil registers none.
	Registerer prometheus.Registerer
}

// Coordinator looks up refs and fetches content, each once for all who want it.
type Coordinator struct {
	policy  address.Policy
	secrets SecretGetter
	command worker.Command
	clock   clock.PassiveClock
	metrics *metrics
	cache   *cache

	registries func(namespace string) []v1alpha1.Source

	resolving *semaphore.Weighted
	fetching  *semaphore.Weighted
	hosts     *hosts
	tenants   *bulkhead
	resolves  flights[Revision]
	snapshots flights[*Snapshot]
	digests   flights[string]
	images    *images

	ctx    context.Context // of all flights; ends with Run
	cancel context.CancelFunc

	life   sync.Mutex
	closed bool
	group  sync.WaitGroup // flights; added to under life, while not closed

	mu sync.Mutex
	// Guarded by mu.
	known map[string]*knowledge
	// told counts what sources told of themselves, by identity.
	told map[string]uint64
}

// New makes a Coordinator. It takes over the cache on disk and starts nothing.
func New(o Options) (*Coordinator, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.Worker.Path == "" {
		o.Worker = worker.Self(WorkerName)
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	cache, err := openCache(o.CacheDir, o.CacheBytes, o.Clock, m)
	if err != nil {
		return nil, err
	}
	images, err := openImages(cache.path(imagesName))
	if err != nil {
		return nil, err
	}
	c := &Coordinator{
		registries: o.Registries, images: images,
		policy:  address.Policy{Allow: o.Allow, Deny: o.Deny, Proxy: o.Proxy},
		secrets: o.Secrets, command: o.Worker, clock: o.Clock, metrics: m, cache: cache,
		resolving: semaphore.NewWeighted(maxResolves), fetching: semaphore.NewWeighted(maxFetches),
		hosts: newHosts(o.Clock), tenants: newBulkhead(),
		known: map[string]*knowledge{}, told: map[string]uint64{},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// Run waits for ctx and then ends whatever is being fetched. The Coordinator can
// be used before Run and until it returns.
func (c *Coordinator) Run(ctx context.Context) error {
	<-ctx.Done()
	c.cancel()
	c.life.Lock()
	c.closed = true
	c.life.Unlock()
	c.group.Wait()
	return c.images.close()
}

// begin counts a flight, unless the Coordinator has ended.
func (c *Coordinator) begin() bool {
	c.life.Lock()
	defer c.life.Unlock()
	if c.closed || c.ctx.Err() != nil {
		return false
	}
	c.group.Add(1)
	return true
}
