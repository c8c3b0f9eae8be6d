// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// An object moves from one Release to another of the same namespace of the hub without
// being deleted when both say so: the one has it in its render no longer, the other
// has it in its own. If the new one came first and was refused, the old one lets go of
// the object in place of pruning it; if the old one listed it as orphaned, the new one
// takes it.

// heir names a Release that wants an object of r and was refused it; empty: none.
func (r *release) heir(id manifest.Identity) string {
	r.mu.Lock()
	namespace := r.ref.Namespace
	r.mu.Unlock()
	for _, other := range r.runner.all() {
		if other == r {
			continue
		}
		other.mu.Lock()
		wants := other.ref.Namespace == namespace && other.order.Verb == tunnel.VerbApply && other.wantsLocked(id)
		name := other.ref.Namespace + "/" + other.ref.Name
		other.mu.Unlock()
		if wants {
			return name
		}
	}
	return ""
}

// wantsLocked says whether a Release could not have an object because another has it.
func (r *release) wantsLocked(id manifest.Identity) bool {
	if p, planned := r.problems[id]; planned {
		return p.reason == exceptionOwned
	}
	o := r.objects[id]
	return o != nil && !o.applied && o.problem != nil && o.problem.reason == exceptionOwned
}

// callHeirs has Releases try again that were refused objects of others: one was let go.
func (rn *Runner) callHeirs(from *release) {
	for _, r := range rn.all() {
		if r == from {
			continue
		}
		r.againNow()
	}
}

// orphan says whether a Release lists an object, by its UID, as one that left its
// render and was not pruned.
func (r *release) orphan(id manifest.Identity, uid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.objects[id]
	return o != nil && o.orphaned && uid != "" && o.uid == uid
}
