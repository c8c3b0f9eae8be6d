// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// A Release that was deleted while its cluster was away, and made anew under its
// name, is to take the workloads over. Its predecessor's remove order is not given
// out before its own order is: an agent that comes back would have removed all
// before it heard of the successor, which is rendered only when the agent is there.

// newcomer is a Release that nothing was ordered for yet.
type newcomer struct {
	uid types.UID
	// cluster is the name of its Cluster.
	cluster string
}

func nameOf(release *v1alpha1.Release) types.NamespacedName {
	return types.NamespacedName{Namespace: release.Namespace, Name: release.Name}
}

// arriveLocked notes that a Release waits for its first order, or does so no longer.
func (d *Deliverer) arriveLocked(release *v1alpha1.Release, waits bool) {
	name := nameOf(release)
	before, was := d.newcomers[name]
	switch {
	case waits && before.uid != release.UID:
		d.newcomers[name] = newcomer{uid: release.UID, cluster: release.Spec.ClusterRef.Name}
	case !waits && was && before.uid == release.UID:
		delete(d.newcomers, name)
	default:
		return
	}
	for _, t := range d.buried {
		if t.Release.Namespace == name.Namespace && t.Release.Name == name.Name {
			d.changeLocked(d.setLocked(t.ClusterUID))
		}
	}
}

// withheldLocked says whether a last order waits for the order of a successor.
func (d *Deliverer) withheldLocked(t *Tombstone) bool {
	if t.Verb != tunnel.VerbRemove || t.Done {
		return false
	}
	next, ok := d.newcomers[types.NamespacedName{Namespace: t.Release.Namespace, Name: t.Release.Name}]
	return ok && string(next.uid) != t.Release.UID && (t.cluster == "" || t.cluster == next.cluster)
}
