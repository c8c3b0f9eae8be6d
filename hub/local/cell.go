// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/engine"
	"kumodo.io/convoy/pkg/tunnel"
)

// cell is what this room does for one Cluster.
type cell struct {
	// Static.
	manager *Manager
	key     types.NamespacedName
	uid     types.UID
	id      tunnel.ClusterID
	cancel  context.CancelFunc
	done    chan struct{}
	// pokes: look at the Cluster again. suspects: a call has failed. One place each.
	pokes, suspects chan struct{}

	// now is the engine that runs, for others to ask.
	now atomic.Pointer[serving]

	// Owned by run.
	conn     *connection
	serving  *serving
	slot     bool
	failures int
	lookedAt time.Time
}

func (c *cell) poke() { signal(c.pokes) }

func (c *cell) suspect() { signal(c.suspects) }

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default: // it is told already
	}
}

// run looks at the Cluster and at what it stands for, again and again, until ctx
// ends. Then the engine ends; what it applied stays.
func (c *cell) run(ctx context.Context) {
	defer func() {
		c.stop()
		c.disconnect()
		c.manager.unclaim(c.uid)
	}()
	for ctx.Err() == nil {
		f := c.look(ctx)
		c.lookedAt = c.manager.clock.Now()
		c.wait(ctx, f)
	}
}

// wait until there is a cause to look again.
func (c *cell) wait(ctx context.Context, f *fault) {
	clock := c.manager.clock
	var again <-chan time.Time
	if f != nil && f.again {
		again = clock.After(pause(c.failures))
	}
	suspects := c.suspects
	var ended <-chan struct{}
	if c.serving != nil {
		ended = c.serving.ended
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.pokes:
			return
		case <-again:
			return
		case <-ended:
			return
		case <-suspects:
			// Not at once: one failure makes many calls fail.
			suspects = nil
			if early := suspectGap - clock.Since(c.lookedAt); again == nil {
				again = clock.After(max(early, retryMin))
			}
		}
	}
}

// pause after so many failures in a row.
func pause(failures int) time.Duration {
	most := retryMax
	if failures < 16 {
		most = min(retryMax, retryMin<<max(failures-1, 0))
	}
	return most/2 + rand.N(most/2) // spreads load, hides nothing
}

// look probes the Cluster's target, starts or ends the engine as the outcome
// demands, and writes the outcome. nil: an engine runs.
func (c *cell) look(ctx context.Context) *fault {
	cluster, ok := c.manager.opts.Clusters.Cluster(c.key)
	if !ok || cluster.UID != c.uid {
		c.stop()
		return nil // this cell is about to be ended
	}
	if c.serving != nil && c.serving.over() {
		c.stop() // it ended by itself, and says why in the log
	}
	before := c.serving
	found, err := c.examine(ctx, cluster)
	if ctx.Err() != nil {
		return nil
	}
	var f *fault
	if err != nil && !errors.As(err, &f) {
		f = away(err, "%s", plain(err))
	}
	log := logr.FromContextOrDiscard(ctx)
	if f != nil {
		c.failures++
		if f.drop {
			c.stop()
			c.manager.unclaim(c.uid)
		}
		c.manager.metrics.faults.WithLabelValues(f.reason).Inc()
		if cluster.Status.Reachable || c.failures == 1 {
			log.Info("cluster is not served", "reason", f.reason, "cause", f.message)
		}
	} else {
		c.failures = 0
	}
	err = c.write(ctx, cluster, func(status *v1alpha1.ClusterStatus) {
		if f != nil {
			notReached(status, f)
			return
		}
		reached(status, found)
	})
	if err != nil && ctx.Err() == nil {
		log.Error(err, "the outcome of a probe could not be written")
		return away(err, "the outcome could not be written")
	}
	if f == nil && !cluster.Status.Reachable && before != nil && c.serving == before && before.runner.Loaded() {
		// The engine went on meanwhile and has nothing new to say; what was said of its
		// Releases since is that they are not heard of.
		c.manager.opts.Status.Connected(c.id)
	}
	return f
}

// write changes the status, when that changes anything: what is in memory is
// compared first.
func (c *cell) write(ctx context.Context, cluster *v1alpha1.Cluster, change func(*v1alpha1.ClusterStatus)) error {
	wanted := cluster.Status.DeepCopy()
	change(wanted)
	if equality.Semantic.DeepEqual(wanted, &cluster.Status) && cluster.Status.ObservedGeneration == cluster.Generation {
		return nil
	}
	return c.manager.opts.Status.Cluster(ctx, c.key, c.uid, func(status *v1alpha1.ClusterStatus) error { //nolint:wrapcheck // names the Cluster
		change(status)
		return nil
	})
}

// examine finds out whether the Cluster can be served, and serves it.
func (c *cell) examine(ctx context.Context, cluster *v1alpha1.Cluster) (engine.Cluster, error) {
	m := c.manager
	creds, err := m.credentials(ctx, cluster)
	var f *fault
	switch {
	case err == nil:
		if c.conn == nil || c.conn.hash != creds.hash() {
			c.stop() // what was taken away is not used any more
			c.disconnect()
			if c.conn, err = m.connect(creds, c.suspect); err != nil {
				return engine.Cluster{}, err
			}
		}
	case errors.As(err, &f):
		c.stop()
		c.disconnect()
		return engine.Cluster{}, err
	case c.conn == nil:
		return engine.Cluster{}, err
	default:
		// The host is away, which says nothing about this cluster.
	}
	found, err := c.probe(ctx, c.conn, cluster.Status.Reachable)
	if err != nil {
		return found, c.probeFault(ctx, cluster.Spec.ConnectionMode, err)
	}
	if err := c.sole(cluster, found.UID); err != nil {
		return found, err
	}
	if c.serving != nil && c.serving.target == found.UID {
		return found, nil
	}
	c.stop() // another cluster answers at that address
	if before := cluster.Status.ClusterUID; before != "" && before != found.UID {
		logr.FromContextOrDiscard(ctx).Info("cluster stands for another target than before", "before", before, "now", found.UID)
		if err := m.opts.Status.Reset(ctx, c.id); err != nil {
			return found, away(err, "that the target is another one than before could not be recorded")
		}
	}
	return found, c.start(ctx, cluster, found.UID)
}

// sole refuses a Cluster whose target another Cluster stands for.
func (c *cell) sole(cluster *v1alpha1.Cluster, target string) error {
	for _, other := range c.manager.opts.Clusters.Clusters() {
		if other.UID == c.uid || other.Status.ClusterUID != target || !precedes(other, cluster, target) {
			continue
		}
		return c.taken(other, target)
	}
	holder, ok := c.manager.claim(target, c.uid)
	if ok {
		return nil
	}
	for _, other := range c.manager.opts.Clusters.Clusters() {
		if other.UID == holder {
			return c.taken(other, target)
		}
	}
	return conflict("another Cluster stands for that cluster (namespace kube-system has the UID %s)", target)
}

func (c *cell) taken(other *v1alpha1.Cluster, target string) error {
	name := "a Cluster of another namespace"
	if other.Namespace == c.key.Namespace {
		name = "Cluster " + other.Name
	}
	return conflict("%s stands for that cluster already (namespace kube-system has the UID %s): one of the two has to go", name, target)
}

// precedes says which of two Clusters for one target stays: who was recorded first,
// then the older one.
func precedes(a, b *v1alpha1.Cluster, target string) bool {
	if b.Status.ClusterUID != target {
		return true
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}

func (c *cell) disconnect() {
	if c.conn != nil {
		c.conn.close()
		c.conn = nil
	}
}
