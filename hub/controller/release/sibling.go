// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/deliver"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// One commit may move an object from one Release to another. Whoever is looked at first
// does not see that the other will want it: so a Release that is about to delete
// something waits for its siblings, those of the same source and Cluster, until all were
// looked at with the revision that it comes from. That takes moments. If it takes longer,
// or the render of one fails, the order goes out with pruning off: what left is listed as
// orphaned, and deleted or taken over when the siblings have been rendered.

// look is what the last look at a Release came to.
type look struct {
	uid        types.UID
	generation int64
	revision   string
	// digest of its render, and the namespace that it was made for; empty: there is none,
	// since it failed.
	digest, namespace string
}

// looks at Releases. All of it can be lost: then they count as not looked at.
type looks struct {
	mu sync.Mutex
	by map[types.NamespacedName]look
}

func (l *looks) at(key types.NamespacedName) look {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.by[key]
}

// put says whether that is new.
func (l *looks) put(key types.NamespacedName, what look) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[types.NamespacedName]look{}
	}
	if l.by[key] == what {
		return false
	}
	l.by[key] = what
	return true
}

func (l *looks) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.by, key)
}

// look is what this reconcile came to; false: to nothing that says what the Release will
// have.
func (w *work) look() (look, bool) {
	out := look{uid: w.release.UID, generation: w.release.Generation, revision: w.revision.Key}
	made := w.made
	if made == nil && w.held {
		made = w.release.Status.Render // it stays as it is, whatever the source has
	}
	if made != nil {
		out.digest, out.namespace = made.Objects.Digest, made.TargetNamespace
		return out, out.revision != ""
	}
	failed := w.outcome.Rendered != nil && w.outcome.Rendered.Status == metav1.ConditionFalse
	return out, failed && out.revision != ""
}

// siblings that may want what a Release is about to delete.
type siblings struct {
	// late is one that was not looked at yet, broken one whose render fails, fresh one
	// whose render has an object that leaves and is not known to the cache yet.
	late, broken *v1alpha1.Release
	fresh        []freshLook
}

type freshLook struct {
	release *v1alpha1.Release
	look    look
}

// afterSiblings gives the terms under which a render can be ordered without deleting what
// one of the same commit is to take over, or says that the order waits for a moment.
func (r *Reconciler) afterSiblings(ctx context.Context, w *work, target wanted, terms deliver.Terms, ordered tunnel.Order, isOrdered bool) (deliver.Terms, *report.Finding, error) {
	same := isOrdered && target.isOf(ordered)
	if r.Layers == nil || w.revision.Key == "" || same && ordered.Policy.PruneOrphaned {
		return terms, nil, nil
	}
	found := r.siblings(w)
	if found.late == nil && found.broken == nil && len(found.fresh) == 0 {
		w.note.awaits = awaits{}
		return terms, nil, nil
	}
	var current *wanted
	if isOrdered {
		current = enforced(ordered)
	}
	leaving, err := r.leaving(ctx, w.release, current, &target)
	if err != nil || len(leaving) == 0 {
		return terms, nil, err
	}
	for _, fresh := range found.fresh {
		has, err := r.identitiesOf(ctx, fresh.look.digest)
		if ctx.Err() != nil {
			return terms, nil, fmt.Errorf("read the render of %s: %w", keyOf(fresh.release), ctx.Err())
		}
		for _, id := range leaving {
			if err != nil || has.Has(id, fresh.look.namespace) {
				w.soon = true // the cache says more in a moment
				return terms, (&heir{release: fresh.release, object: id, unread: err}).finding(), nil
			}
		}
	}
	if found.late == nil && found.broken == nil {
		return terms, nil, nil
	}
	if r.askSibling(w, found) {
		w.soon = true // it was looked at this very moment
	}
	now := r.Clock.Now()
	if w.note.awaits.revision != w.revision.Key {
		w.note.awaits = awaits{w.revision.Key, now}
	}
	waited := now.Sub(w.note.awaits.since)
	if found.broken == nil && !same && waited < siblingWait {
		w.hush = waited < siblingQuiet
		if w.pause = siblingWait - waited; w.hush {
			w.pause = siblingQuiet - waited
		}
		return terms, found.finding(leaving[0], w.revision.Display), nil
	}
	w.again = true
	terms.Policy.PruneOrphaned = false
	return terms, nil, nil
}

// askSibling has one that is in the way enqueue this Release when it has been looked at,
// and says whether it has been meanwhile: it did not know then whom to tell.
func (r *Reconciler) askSibling(w *work, found siblings) bool {
	other := found.late
	if other == nil {
		other = found.broken
	}
	r.waiters.add(keyOf(other), w.key)
	if found.late != nil {
		r.Add(keyOf(other))
	}
	now := r.siblings(w)
	return now.late != found.late || now.broken != found.broken
}

// awaits says since when an order waits for siblings at a revision.
type awaits struct {
	revision string
	since    time.Time
}

// siblings that may want something at the revision that a Release comes from.
func (r *Reconciler) siblings(w *work) siblings {
	var out siblings
	cluster := types.NamespacedName{Namespace: w.release.Namespace, Name: w.release.Spec.ClusterRef.Name}
	for _, other := range r.Index.ReleasesByCluster(cluster) {
		if other.UID == w.release.UID || other.DeletionTimestamp != nil || other.Spec.Suspend || !sameSource(w.release, other) {
			continue
		}
		seen := r.looks.at(keyOf(other))
		switch {
		case seen.uid != other.UID || seen.generation != other.Generation || seen.revision != w.revision.Key:
			out.late = first(out.late, other)
		case seen.digest == "":
			out.broken = first(out.broken, other)
		case r.lags(other, seen):
			out.fresh = append(out.fresh, freshLook{other, seen})
		}
	}
	return out
}

// lags says whether a render is neither ordered nor known to the cache.
func (r *Reconciler) lags(other *v1alpha1.Release, seen look) bool {
	if render := other.Status.Render; render != nil && render.Objects.Digest == seen.digest {
		return false
	}
	ordered, ok := r.Orders.Ordered(other.UID)
	return !ok || ordered.Objects == nil || ordered.Objects.Digest != seen.digest
}

func first(a, b *v1alpha1.Release) *v1alpha1.Release {
	if a == nil || before(b, a) {
		return b
	}
	return a
}

// finding names the sibling that an order waits for.
func (s *siblings) finding(object manifest.Identity, revision string) *report.Finding {
	return waitsFor(v1alpha1.ReasonHandOver, short(fmt.Sprintf(
		"%s would be deleted, and Release %q, of the same source, is not rendered yet at %s: it may have it now. If that takes more than %s all else is applied, and the object stays, as orphaned, until it is",
		object, s.late.Name, revision, siblingWait)))
}
