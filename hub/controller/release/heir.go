// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/deliver"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// The agent hands an object over from one Release to another when it knows that the
// other wants it. Of one that is not ordered yet only the hub knows. An heir is such a
// Release, of the same namespace and Cluster, whose render has an object that this one
// is about to delete: until it is ordered nothing is deleted that it has.

// heir is a Release that is to take over an object.
type heir struct {
	release *v1alpha1.Release
	object  manifest.Identity
	// unread says why its render could not be read: it may have all there is.
	unread error
}

// handOver gives the terms under which a render can be ordered without deleting what an
// heir has, or says that the order waits. A render that is enforced already is ordered
// with prune off, and so is one whose heir waits for others, since that may be for this
// very Release: the objects are listed as orphaned then, and the heir takes them.
func (r *Reconciler) handOver(ctx context.Context, w *work, target wanted, terms deliver.Terms, ordered tunnel.Order, isOrdered bool) (deliver.Terms, *report.Finding, error) {
	if !terms.Policy.PruneOrphaned {
		return terms, nil, nil
	}
	var current *wanted
	if isOrdered {
		current = enforced(ordered)
	}
	found, err := r.heir(ctx, w.release, w.cluster.UID, current, &target)
	if err != nil {
		return terms, nil, err
	}
	if found == nil {
		return r.afterSiblings(ctx, w, target, terms, ordered, isOrdered)
	}
	if isOrdered && target.isOf(ordered) || waitsForOthers(found.release) {
		terms.Policy.PruneOrphaned = false
		return terms, nil, nil
	}
	w.again = true
	return terms, found.finding(), nil
}

// removalPending says what a removal that deletes workloads waits for; nil: nothing.
func (r *Reconciler) removalPending(ctx context.Context, key types.NamespacedName, release *v1alpha1.Release) (*report.Finding, error) {
	ordered, isOrdered := r.Orders.Ordered(release.UID)
	if _, buried := r.Graves.Buried(release.UID); buried || !isOrdered || release.Spec.DeletionPolicy.KeepWorkloads {
		return nil, nil
	}
	cluster, ok := r.Cache.Cluster(types.NamespacedName{Namespace: key.Namespace, Name: release.Spec.ClusterRef.Name})
	if !ok {
		return nil, nil
	}
	found, err := r.heir(ctx, release, cluster.UID, enforced(ordered), nil)
	if err != nil || found == nil {
		return nil, err
	}
	if verb, err := r.verb(ctx, release); err != nil || verb != tunnel.VerbRemove {
		return nil, err
	}
	return found.finding(), nil
}

// heir finds the first Release that has an object in its render that is on the target
// for this one, or ordered, and not in its next render; nil: there is none. Those that
// could be one enqueue this one when they change.
func (r *Reconciler) heir(ctx context.Context, release *v1alpha1.Release, cluster types.UID, current, next *wanted) (*heir, error) {
	if r.Layers == nil {
		return nil, nil
	}
	named := types.NamespacedName{Namespace: release.Namespace, Name: release.Spec.ClusterRef.Name}
	var others []*v1alpha1.Release
	for _, other := range r.Index.ReleasesByCluster(named) {
		if other.UID == release.UID || !r.unordered(other, cluster) {
			continue
		}
		r.predecessors.add(keyOf(other), keyOf(release))
		// It may have changed before it knew whom to tell.
		if other, ok := r.Cache.Release(keyOf(other)); ok && r.unordered(other, cluster) {
			others = append(others, other)
		}
	}
	if len(others) == 0 {
		return nil, nil
	}
	leaving, err := r.leaving(ctx, release, current, next)
	if err != nil || len(leaving) == 0 {
		return nil, err
	}
	var first *heir
	for _, other := range others {
		if first != nil && waitsForOthers(first.release) || first != nil && !before(other, first.release) && !waitsForOthers(other) {
			continue
		}
		render := other.Status.Render
		has, err := r.identitiesOf(ctx, render.Objects.Digest)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("read the render of %s: %w", keyOf(other), ctx.Err())
		}
		if err != nil {
			first = &heir{release: other, object: leaving[0], unread: err}
			continue
		}
		for _, id := range leaving {
			if has.Has(id, render.TargetNamespace) {
				first = &heir{release: other, object: id}
				break
			}
		}
	}
	return first, nil
}

// unordered says whether a Release has a render that its order does not carry.
func (r *Reconciler) unordered(other *v1alpha1.Release, cluster types.UID) bool {
	render := other.Status.Render
	if other.DeletionTimestamp != nil || render == nil || render.Objects.Digest == "" {
		return false
	}
	ordered, ok := r.Orders.Ordered(other.UID)
	return !ok || types.UID(ordered.ClusterUID) != cluster || ordered.Objects == nil || ordered.Objects.Digest != render.Objects.Digest
}

// leaving are the objects of a Release that are not in its next render; nil: it has none.
func (r *Reconciler) leaving(ctx context.Context, release *v1alpha1.Release, current, next *wanted) ([]manifest.Identity, error) {
	entries, err := r.Reporter.Inventory(ctx, keyOf(release), release.UID)
	if err != nil || len(entries) == 0 && current == nil {
		return nil, err
	}
	var stay *manifest.Names
	if next != nil {
		if read, err := r.identitiesOf(ctx, next.objects.Digest); err == nil {
			stay = read
		} else {
			// All of it may leave then: rather too much is held than too little.
			logr.FromContextOrDiscard(ctx).Error(err, "A render cannot be read", "digest", next.objects.Digest)
		}
	}
	var out []manifest.Identity
	for i := range entries {
		e := &entries[i]
		id := manifest.Identity{Group: e.Group, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}
		if next == nil || !stay.Has(id, next.namespace) {
			out = append(out, id)
		}
	}
	if current == nil || next != nil && current.objects.Digest == next.objects.Digest {
		return out, nil
	}
	// What was ordered may be there, and not have been reported yet.
	had, err := r.identitiesOf(ctx, current.objects.Digest)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "A render cannot be read", "digest", current.objects.Digest)
		return out, nil // the inventory is what an agent has said
	}
	for id := range had.All() {
		if id.Namespace == "" {
			id.Namespace = current.namespace
		}
		if next == nil || !stay.Has(id, next.namespace) {
			out = append(out, id)
		}
	}
	return out, nil
}

// waitsForOthers says whether a Release is not ordered since it waits for others.
func waitsForOthers(release *v1alpha1.Release) bool {
	c := meta.FindStatusCondition(release.Status.Conditions, v1alpha1.ConditionApplied)
	if c == nil || release.Spec.Suspend {
		return false
	}
	switch c.Reason {
	case v1alpha1.ReasonWaitingForWave, v1alpha1.ReasonDependency, v1alpha1.ReasonHandOver:
		return c.Status == metav1.ConditionFalse
	}
	return false
}

// finding says what an order waits for, and what to do.
func (h *heir) finding() *report.Finding {
	why := "it is not ordered yet"
	if c := meta.FindStatusCondition(h.release.Status.Conditions, v1alpha1.ConditionApplied); c != nil && c.Status != metav1.ConditionTrue {
		why = c.Reason
	}
	if h.release.Spec.Suspend {
		why = "it is suspended"
	}
	has := fmt.Sprintf("%s, which would be deleted, is in the render of Release %q", h.object, h.release.Name)
	if h.unread != nil {
		has = fmt.Sprintf("%s would be deleted, and may be in the render of Release %q, which cannot be read", h.object, h.release.Name)
	}
	return &report.Finding{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonHandOver, Message: short(fmt.Sprintf(
		"%s, and that is not ordered yet (%s): let that Release go on, or delete it, or take the object out of its render; a deletion with spec.deletionPolicy.keepWorkloads does not wait", has, why))}
}

// inherited is what of a Release matters to those whose objects it may have.
type inherited struct {
	digest, cluster, reason string
	sequence                int64
	suspended, deleted      bool
}

func inherits(release *v1alpha1.Release) inherited {
	out := inherited{
		cluster: release.Spec.ClusterRef.Name, sequence: release.Status.Sequence,
		suspended: release.Spec.Suspend, deleted: release.DeletionTimestamp != nil,
	}
	if render := release.Status.Render; render != nil {
		out.digest = render.Objects.Digest
	}
	if c := meta.FindStatusCondition(release.Status.Conditions, v1alpha1.ConditionApplied); c != nil {
		out.reason = c.Reason
	}
	return out
}

// tellPredecessors enqueues those who asked about a Release.
func (r *Reconciler) tellPredecessors(key types.NamespacedName) {
	for _, waiter := range r.predecessors.take(key) {
		r.AddAfter(waiter, wakePause)
	}
}

// identities of layers, by digest. All of it can be lost.
type identities struct {
	mu    sync.Mutex
	by    map[string]*manifest.Names
	count int
}

func (r *Reconciler) identitiesOf(ctx context.Context, digest string) (*manifest.Names, error) {
	r.layers.mu.Lock()
	known := r.layers.by[digest]
	r.layers.mu.Unlock()
	if known != nil {
		return known, nil
	}
	made, err := r.readLayer(ctx, digest)
	if err != nil {
		return nil, err
	}
	r.layers.mu.Lock()
	defer r.layers.mu.Unlock()
	if r.layers.by == nil || r.layers.count+made.Len() > maxIdentities {
		r.layers.by, r.layers.count = map[string]*manifest.Names{}, 0
	}
	if r.layers.by[digest] == nil {
		r.layers.by[digest] = made
		r.layers.count += made.Len()
	}
	return made, nil
}

func (r *Reconciler) readLayer(ctx context.Context, digest string) (made *manifest.Names, err error) {
	blob, _, err := r.Layers.Open(ctx, digest)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, blob.Close()) }()
	return manifest.ReadNames(blob)
}
