// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// Options of a Reporter. All but Agents, Recorder, Clock and Registerer are required.
type Options struct {
	Releases Releases
	Clusters Clusters
	Sources  Sources
	Memory   Memory

	ReleaseStore StatusStore[*corev1alpha1.Release]
	ClusterStore StatusStore[*corev1alpha1.Cluster]
	SourceStores map[string]SourceStore // by kind
	// RuleSets and RuleSetStores, by kind; nil: none are written.
	RuleSets      RuleSets
	RuleSetStores map[string]RuleSetStore
	Inventories   InventoryStore

	Orders Orders
	// Agents answers live questions; nil: none are asked.
	Agents Agents
	// Recorder of Events; nil: none are recorded (standalone).
	Recorder Recorder

	Clock      clock.WithTicker
	Registerer prometheus.Registerer
}

// keyOf is the name of a Cluster object.
func keyOf(c tunnel.ClusterID) types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
}

// Reporter is the only writer of status.
type Reporter struct {
	// Static after New.
	options Options
	clock   clock.WithTicker
	metrics *metrics
	queue   workqueue.TypedDelayingInterface[types.UID]
	sweeps  workqueue.TypedInterface[types.NamespacedName]
	asks    workqueue.TypedInterface[tunnel.ClusterID]
	losses  workqueue.TypedDelayingInterface[types.UID]

	// missingRules tells which health rules of a Release are missing. Set before Run.
	missingRules func(release *corev1alpha1.Release) []string

	// heldTold are the Events about held deletions.
	heldTold heldTold

	mu sync.Mutex
	// entries holds what agents said and what is not written yet; guarded by mu.
	entries map[types.UID]*entry
	// holdings by Cluster UID: what agents hold beyond the hub; guarded by mu.
	holdings map[types.UID]*holding
	// forgotten by Release UID: what agents have no record of any more; resets by Cluster
	// UID: when another target came to stand behind it; both guarded by mu.
	forgotten map[types.UID]*forgotten
	resets    map[types.UID]time.Time
}

// entry is what is held in memory of one Release.
type entry struct {
	// newest report without its inventory; nil when all is written.
	newest *tunnel.Report
	// inventory that came with this or an earlier report and is not written yet.
	inventory *inventory
	// seen is the counter of the newest report, written of the newest that is in
	// the status or was found to change nothing.
	seen, written int64
	// session counts the cluster's sessions: counters are compared within one.
	session int
	// motionSince is when the first report came that was not settled.
	motionSince time.Time
	// told: that was written since; what follows waits longer.
	told bool
	// noticed is when objects in trouble, or held while they are deleted, were last written
	// down before all had settled.
	noticed time.Time
	// flushed is closed after the next attempt to write; nil: nobody waits.
	flushed chan struct{}
}

// New makes a Reporter. Nothing is written before Run, which also ends the
// queues that are made here.
func New(options Options) *Reporter {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Reporter{
		options: options,
		clock:   options.Clock,
		metrics: newMetrics(options.Registerer),
		queue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.UID]{
			Name: "report", Clock: options.Clock,
		}),
		sweeps: workqueue.NewTyped[types.NamespacedName](),
		asks:   workqueue.NewTyped[tunnel.ClusterID](),
		losses: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.UID]{
			Name: "losses", Clock: options.Clock,
		}),
		entries: map[types.UID]*entry{}, holdings: map[types.UID]*holding{},
		forgotten: map[types.UID]*forgotten{}, resets: map[types.UID]time.Time{},
		missingRules: func(*corev1alpha1.Release) []string { return nil },
	}
}

// Run writes what is observed until ctx ends. Reports that are not written by
// then were not acknowledged, and come again.
func (r *Reporter) Run(ctx context.Context) error {
	// A write under way when the hub ends is finished: its own deadline ends it.
	writing := context.WithoutCancel(ctx)
	var group errgroup.Group
	for range writers {
		group.Go(func() error {
			for {
				uid, shutdown := r.queue.Get()
				if shutdown {
					return nil
				}
				r.flush(writing, uid)
				r.queue.Done(uid)
			}
		})
	}
	group.Go(func() error { r.sweepLoop(ctx); return nil })
	for range askers {
		group.Go(func() error { r.askLoop(ctx); return nil })
	}
	group.Go(func() error { r.lossLoop(ctx); return nil })
	<-ctx.Done()
	r.losses.ShutDown()
	r.queue.ShutDown()
	r.sweeps.ShutDown()
	r.asks.ShutDown()
	return group.Wait()
}

// forget drops what is held of a Release that is gone, and wakes who waits.
func (r *Reporter) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[uid]; e != nil {
		e.wakeLocked()
		delete(r.entries, uid)
	}
	delete(r.forgotten, uid)
}

// wakeLocked tells those who wait that an attempt to write has ended.
func (e *entry) wakeLocked() {
	if e.flushed != nil {
		close(e.flushed)
		e.flushed = nil
	}
}

// newest is the report held in memory, or nil. It is never changed in place.
func (r *Reporter) newest(uid types.UID) *tunnel.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[uid]; e != nil {
		return e.newest
	}
	return nil
}
