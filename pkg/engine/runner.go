// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/pkg/tunnel"
)

// Options of a Runner. Those without a stated default are required.
type Options struct {
	// Config reaches the cluster. Its rate limits are not used.
	Config *rest.Config
	// HubID and ClusterUID are the only ones whose orders are accepted.
	HubID      string
	ClusterUID string
	State      State
	Blobs      Blobs
	// Namespaces are the only ones that the Runner may write to and watch, where its
	// account has rights in them alone; kinds without a namespace are refused then.
	// Empty: the whole cluster.
	Namespaces []string
	// Report takes what there is to say. It must not block.
	Report func(tunnel.Report)
	// Verify checks an order that was read back from State, as it was checked when
	// it came. Nil: not checked.
	Verify func(tunnel.Signed) error
	// HubTime is the hub's clock as well as it is known; nil: the local clock. What is
	// reported and recorded is by that clock, waits and deadlines are by Clock.
	HubTime    func() time.Time
	Clock      clock.WithTicker      // default: the real one
	Logger     logr.Logger           // default: none
	Registerer prometheus.Registerer // default: none
}

// Features are what orders may require of this engine.
var features = map[string]bool{
	tunnel.FeatureApply: true, tunnel.FeatureRemove: true, tunnel.FeatureRelease: true,
	tunnel.FeatureIgnore: true, tunnel.FeatureSuspend: true,
	tunnel.FeatureSealed: true, tunnel.FeatureReplace: true, tunnel.FeatureRetry: true,
	tunnel.FeatureImpersonate: true, tunnel.FeaturePermitted: true,
	tunnel.FeaturePrune: true, tunnel.FeatureBudget: true,
	tunnel.FeatureHooks: true, tunnel.FeatureRules: true, tunnel.FeatureWave: true,
}

// Features lists what orders may require of this engine, sorted.
func Features() []string { return sortedSet(features) }

// Runner carries orders out on one cluster. Make one with New, start it with Run.
type Runner struct {
	hub        string
	cluster    string
	target     *target
	discovery  *discovery
	state      State
	blobs      Blobs
	out        func(tunnel.Report)
	verify     func(tunnel.Signed) error
	hubTime    func() time.Time
	moments    *moments
	clock      clock.WithTicker
	log        logr.Logger
	meter      *metrics
	namespaces []string // sorted; empty: all
	slots      chan struct{}
	waves      waves
	lives      chan struct{} // answers to Live that are being made
	tidyNotify chan struct{}

	mu       sync.Mutex
	releases map[string]*release // by UID; guarded by mu
	rules    *ruleCache
	holds    map[string]int // digests that are being staged; guarded by mu
	interned map[resource]*resource
	// head is what the hub has for this Cluster, Release UID to sequence, as its last
	// head has proven; nil before the first; guarded by mu.
	head map[string]int64
	// headEnds is until when that head proves it, by the hub's clock; shared: another
	// Cluster of the hub stands for the same target; guarded by mu.
	headEnds time.Time
	shared   bool

	// lifeMu guards ctx and group, which are set while the Runner runs.
	watchMu sync.Mutex
	watches map[scope]*watch // guarded by watchMu
	ctx     context.Context  // of the run; nil before; guarded by watchMu
	group   *errgroup.Group  // guarded by watchMu
	ended   bool             // guarded by watchMu

	loaded   chan struct{} // closed when a Run has read the state
	loadOnce sync.Once     // closes it
}

// New makes a Runner. It starts nothing.
func New(o Options) (*Runner, error) {
	switch {
	case o.Config == nil, o.State == nil, o.Blobs == nil, o.Report == nil:
		return nil, errors.New("engine: Config, State, Blobs and Report are required")
	case o.HubID == "" || o.ClusterUID == "":
		return nil, errors.New("engine: HubID and ClusterUID are required")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.HubTime == nil {
		o.HubTime = o.Clock.Now
	}
	if o.Verify == nil {
		o.Verify = func(tunnel.Signed) error { return nil }
	}
	if o.Logger.GetSink() == nil {
		o.Logger = logr.Discard()
	}
	meter := newMetrics(o.Registerer)
	t, err := newTarget(o.Config, o.Clock, meter)
	if err != nil {
		return nil, err
	}
	return &Runner{
		hub: o.HubID, cluster: o.ClusterUID, target: t, discovery: newDiscovery(t),
		state: o.State, blobs: o.Blobs, out: o.Report, verify: o.Verify, hubTime: o.HubTime, moments: newMoments(o.Clock, o.HubTime),
		clock: o.Clock, log: o.Logger, meter: meter, slots: make(chan struct{}, maxActive), lives: make(chan struct{}, maxLives),
		tidyNotify: make(chan struct{}, 1), loaded: make(chan struct{}),
		rules: newRuleCache(), releases: map[string]*release{}, holds: map[string]int{}, interned: map[resource]*resource{},
		watches: map[scope]*watch{}, namespaces: slices.Sorted(slices.Values(o.Namespaces)),
	}, nil
}

// Run reads what State has, enforces it, and carries out what is accepted, until ctx
// ends. It returns when all of its goroutines have.
func (rn *Runner) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(logr.NewContext(ctx, rn.log))
	if err := rn.loadPatiently(ctx); err != nil {
		return nil //nolint:nilerr // the end was asked for before the state could be read
	}
	rn.loadOnce.Do(func() { close(rn.loaded) })
	rn.watchMu.Lock()
	rn.ctx, rn.group = ctx, group
	for _, w := range rn.watches {
		rn.startWatch(w)
	}
	rn.watchMu.Unlock()
	group.Go(func() error { return rn.keepTidy(ctx) })
	rn.mu.Lock()
	all := make([]*release, 0, len(rn.releases))
	for _, r := range rn.releases {
		all = append(all, r)
	}
	rn.mu.Unlock()
	for _, r := range all {
		r.mu.Lock()
		r.dirty = true
		r.wakeLocked()
		r.mu.Unlock()
	}
	<-ctx.Done()
	rn.watchMu.Lock()
	rn.ended = true
	rn.watchMu.Unlock()
	err := group.Wait()
	rn.target.client.CloseIdleConnections()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Loaded says whether a Run has read the state. Before that Have, Held and all else that
// says what is held here know a part at most.
func (rn *Runner) Loaded() bool {
	select {
	case <-rn.loaded:
		return true
	default:
		return false
	}
}

// WaitLoaded waits until a Run has read the state; ErrNotLoaded: ctx ended first.
func (rn *Runner) WaitLoaded(ctx context.Context) error {
	select {
	case <-rn.loaded:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNotLoaded, context.Cause(ctx))
	}
}

// start starts the goroutine of a release; false when the Runner does not run.
func (rn *Runner) start(r *release) bool {
	rn.watchMu.Lock()
	defer rn.watchMu.Unlock()
	if rn.ctx == nil || rn.ended || rn.ctx.Err() != nil {
		return false
	}
	ctx := rn.ctx
	rn.group.Go(func() error {
		r.run(ctx)
		return nil
	})
	return true
}

// Acknowledged says that the hub has taken a report over.
func (rn *Runner) Acknowledged(uid string, counter int64) {
	rn.mu.Lock()
	r := rn.releases[uid]
	rn.mu.Unlock()
	if r == nil {
		return
	}
	r.mu.Lock()
	if r.inventoryNew && r.inventorySent > 0 && counter >= r.inventorySent {
		r.inventoryNew, r.acknowledged = false, r.sent
		// The next report differs by the inventory alone: not worth a report.
		if sum, err := fingerprint(r.buildLocked()); err == nil && !r.dirty {
			r.reported = sum
		}
	}
	forget := r.done && r.doneAt > 0 && counter >= r.doneAt
	if forget {
		r.stopping = true
	}
	r.mu.Unlock()
	if forget {
		rn.forget(r)
	}
}

// forget drops a Release that was removed or released, now that the hub knows.
func (rn *Runner) forget(r *release) {
	rn.mu.Lock()
	delete(rn.releases, r.uid)
	defer rn.waves.changed()
	rn.meter.releases.Set(float64(len(rn.releases)))
	rn.mu.Unlock()
	rn.watchMu.Lock()
	defer rn.watchMu.Unlock()
	if rn.ctx == nil || rn.ended {
		return
	}
	ctx := rn.ctx
	rn.group.Go(func() error {
		// A write that is under way ends first, and none begins any more.
		r.writing.Lock()
		defer r.writing.Unlock()
		if err := rn.state.DeleteRecord(ctx, r.uid); err != nil && ctx.Err() == nil {
			// It is read again at the next start, reported again and acknowledged again.
			r.log.Error(err, "record of a removed release not deleted")
		}
		rn.tidy()
		return nil
	})
}

// Have maps Release UIDs to the sequence of the order that is held.
func (rn *Runner) Have() map[string]int64 {
	have := map[string]int64{}
	for _, r := range rn.all() {
		r.mu.Lock()
		if r.order.Sequence > 0 {
			have[r.uid] = r.order.Sequence
		}
		r.mu.Unlock()
	}
	return have
}

func (rn *Runner) all() []*release {
	rn.mu.Lock()
	defer rn.mu.Unlock()
	all := make([]*release, 0, len(rn.releases))
	for _, r := range rn.releases {
		all = append(all, r)
	}
	return all
}

// Head takes what the hub has for this Cluster, by Release UID, as a signed head has
// just proven. What is here beyond it is unknown to the hub: kept, counted, never
// deleted for that. orders is the Runner's from now on.
func (rn *Runner) Head(head tunnel.Head, orders map[string]int64) {
	refused := rn.refusedByMark()
	forgotten := 0
	for _, r := range rn.all() {
		r.mu.Lock()
		held := r.order.Sequence > 0
		r.mu.Unlock()
		if _, known := orders[r.uid]; held && !known {
			forgotten++
		}
	}
	if orders == nil {
		orders = map[string]int64{} // not as before the first
	}
	rn.mu.Lock()
	rn.head = orders
	rn.headEnds, rn.shared = head.ExpiresAt, head.Shared
	rn.mu.Unlock()
	rn.meter.unknown.Set(float64(forgotten))
	for _, r := range refused {
		if r.mayClaim() {
			r.againNow()
		}
	}
}

// Newest gives the newest report of a Release, made now; false if there is none.
func (rn *Runner) Newest(uid string) (tunnel.Report, bool) {
	rn.mu.Lock()
	r := rn.releases[uid]
	rn.mu.Unlock()
	if r == nil {
		return tunnel.Report{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.buildLocked()
	out.Counter, out.At = r.counter, rn.moments.told(r.now())
	out.Inventory = r.inventoryLocked()
	return out, true
}

// intern gives one pointer per resource.
func (rn *Runner) intern(r resource) *resource {
	rn.mu.Lock()
	defer rn.mu.Unlock()
	if p := rn.interned[r]; p != nil {
		return p
	}
	rn.interned[r] = &r
	return &r
}
