// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// Several Clusters may stand for one target, each with an agent of its own. An agent
// knows the Releases of its own Cluster alone, so its head says when there are others:
// a mark of this hub that it cannot account for may be theirs.

// ClusterChanged is told of each change of a Cluster in the cache (a nil next: it is
// gone). It never blocks.
func (d *Deliverer) ClusterChanged(old, next *v1alpha1.Cluster) {
	cluster, target := old, ""
	if next != nil {
		cluster, target = next, next.Status.ClusterUID
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.targets[cluster.UID]
	if before == target {
		return
	}
	if before != "" {
		delete(d.targets, cluster.UID)
		delete(d.standing[before], cluster.UID)
		d.sharingChangedLocked(before, 1) // who is left there may be alone now
		if len(d.standing[before]) == 0 {
			delete(d.standing, before)
		}
	}
	if target != "" {
		d.targets[cluster.UID] = target
		if d.standing[target] == nil {
			d.standing[target] = map[types.UID]struct{}{}
		}
		d.standing[target][cluster.UID] = struct{}{}
		d.sharingChangedLocked(target, 2) // who was alone there is not any more
	}
	if s := d.sets[cluster.UID]; s != nil {
		d.changeLocked(s)
	}
}

// sharingChangedLocked makes the heads of a target's Clusters anew when there are as
// many as that.
func (d *Deliverer) sharingChangedLocked(target string, many int) {
	if len(d.standing[target]) != many {
		return
	}
	for cluster := range d.standing[target] {
		if s := d.sets[cluster]; s != nil {
			d.changeLocked(s)
		}
	}
}

// sharedLocked says whether another Cluster stands for the target of this one.
func (d *Deliverer) sharedLocked(cluster types.UID) bool {
	return len(d.standing[d.targets[cluster]]) > 1
}
