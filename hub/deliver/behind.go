// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/pkg/tunnel"
)

// comparison is what became of the last comparison with what an agent holds.
// Guarded by the Deliverer's lock.
type comparison struct {
	at time.Time
	// missing are the Releases whose orders were asked for and not given back yet.
	missing map[string]struct{}
}

// Behind compares what a Cluster's agent holds, Release UID to sequence, with what
// this hub has. It returns the UIDs, sorted, of which the agent's order is newer,
// or of which the hub has neither an apply order for that Cluster nor a last one:
// the hub was restored from an older copy, or has lost its state. The agent is to
// be asked for these.
func (d *Deliverer) Behind(clusterUID string, have map[string]int64) []string {
	cluster := types.UID(clusterUID)
	newer := d.compare(cluster, have)
	d.onForgotten(cluster, d.forgotten(cluster, have))
	d.onCompared(cluster, newer)
	return newer
}

func (d *Deliverer) compare(cluster types.UID, have map[string]int64) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.setLocked(cluster)
	var newer []string
	for uid, sequence := range have {
		release := types.UID(uid)
		if t := d.buried[release]; t != nil && t.ClusterUID == cluster {
			continue // its last order is listed, whatever came before
		}
		if order := s.orders[release]; order != nil && order.Sequence >= sequence {
			continue
		}
		newer = append(newer, uid)
	}
	slices.Sort(newer)
	newer = newer[:min(len(newer), tunnel.MaxOrders)]
	c := &comparison{at: d.clock.Now(), missing: make(map[string]struct{}, len(newer))}
	for _, uid := range newer {
		c.missing[uid] = struct{}{}
	}
	d.compared[cluster] = c
	d.metrics.behind.Add(float64(len(newer)))
	return newer
}

// Taken is told which of the orders that an agent gave back were looked at.
func (d *Deliverer) Taken(cluster types.UID, releases []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.compared[cluster]; c != nil {
		for _, uid := range releases {
			delete(c.missing, uid)
		}
	}
}

// Compared says whether a Cluster's agent has told this process what it holds, and
// has given back what is newer than the hub's. Before that a new order could undo
// what the hub does not remember. An agent that does not give back what it was
// asked for is waited for no longer than heldPatience.
func (d *Deliverer) Compared(cluster types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.compared[cluster]
	return c != nil && (len(c.missing) == 0 || d.clock.Since(c.at) >= heldPatience)
}

// OnCompared sets who is told what each comparison found. Called before Run; the
// function must not block.
func (d *Deliverer) OnCompared(told func(cluster types.UID, newer []string)) { d.onCompared = told }
