// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// stale lists the objects of the inventory that a plan no longer has. One that is
// the same object under another API group, told by its UID, is not stale; nor is one
// whose kind could not be asked for when the plan was made.
func (r *release) stale(p *plan) []*object {
	r.mu.Lock()
	defer r.mu.Unlock()
	type loose struct{ group, kind, name string }
	planned := make(map[string]bool, len(p.items))
	unlocated := map[loose]bool{}
	uids := map[string]bool{}
	for _, it := range p.items {
		planned[it.id.String()] = true
		if it.res == nil {
			unlocated[loose{it.id.Group, it.id.Kind, it.id.Name}] = true
		}
		if o := r.objects[it.id]; o != nil && o.uid != "" {
			uids[o.uid] = true
		}
	}
	var stale []*object
	for id, o := range r.objects {
		switch {
		case planned[id.String()], unlocated[loose{id.Group, id.Kind, id.Name}]:
		case o.uid != "" && uids[o.uid]:
			r.dropLocked(o) // lives on under its other name
		default:
			stale = append(stale, o)
		}
	}
	return stale
}

// prune deletes what left the render, or marks it as orphaned, against the order of
// waves, and waits until it is really gone.
func (r *release) prune(ctx context.Context, order tunnel.Order, p *plan) error {
	stale := r.stale(p)
	if order.Policy.PruneOrphaned {
		// An empty render is here only because it was allowed to prune all.
		return r.deleteObjects(ctx, order, stale, p.count == 0, r.now().Add(timeoutOf(order)))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range stale {
		if !o.applied && o.uid == "" {
			r.dropLocked(o) // only ever intended
			continue
		}
		before := o.view()
		if !o.orphaned {
			o.orphaned, o.since = true, r.now()
		}
		r.reviewLocked(o, before, r.now())
	}
	return nil
}

// removeAll carries out a remove order: it deletes what the inventory names.
func (r *release) removeAll(ctx context.Context, order tunnel.Order) error {
	r.begin(v1alpha1.OperationRemove, order)
	if err := r.save(ctx); err != nil {
		return r.failSync(ctx, order, err, v1alpha1.ReasonUnknown)
	}
	if err := r.yieldToSuccessor(ctx, order); err != nil {
		return err
	}
	r.mu.Lock()
	all := make([]*object, 0, len(r.objects))
	for _, o := range r.objects {
		all = append(all, o)
	}
	r.mu.Unlock()
	if err := r.deleteObjects(ctx, order, all, false, r.now().Add(timeoutOf(order))); err != nil {
		return r.failSync(ctx, order, err, v1alpha1.ReasonPruneFailed)
	}
	return r.finishLast(ctx, order)
}

// releaseAll carries out a release order: everything stays, without our marks.
func (r *release) releaseAll(ctx context.Context, order tunnel.Order) error {
	r.begin(v1alpha1.OperationRelease, order)
	if err := r.save(ctx); err != nil {
		return r.failSync(ctx, order, err, v1alpha1.ReasonUnknown)
	}
	r.mu.Lock()
	all := make([]*object, 0, len(r.objects))
	for _, o := range r.objects {
		all = append(all, o)
	}
	r.mu.Unlock()
	var failures []error
	for _, o := range all {
		if err := r.checkpoint(ctx, order); err != nil {
			return err
		}
		if err := r.unmark(ctx, o); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", o.id, err))
			continue
		}
		r.drop(o)
	}
	if len(failures) > 0 {
		return r.failSync(ctx, order, failures[0], v1alpha1.ReasonApplyFailed)
	}
	return r.finishLast(ctx, order)
}

// finishLast ends the last order of a Release. Its record stays until the hub has
// taken note.
func (r *release) finishLast(ctx context.Context, order tunnel.Order) error {
	r.mu.Lock()
	r.done = true
	r.applied, r.attempt, r.total = nil, nil, 0
	r.problems = nil
	left := r.leftLocked()
	r.mu.Unlock()
	return r.end(ctx, order, tunnel.Finding{Status: tunnel.True, Reason: v1alpha1.ReasonApplied, Message: left}, nil)
}

// deleteObjects deletes objects against the order of waves and kinds. Before a lower
// wave is begun the objects of the one above are gone.
func (r *release) deleteObjects(ctx context.Context, order tunnel.Order, objects []*object, claims bool, deadline time.Time) error {
	slices.SortFunc(objects, func(a, b *object) int {
		return -cmp.Or(cmp.Compare(a.wave, b.wave), cmp.Compare(tierOf(a.id.Group, a.id.Kind), tierOf(b.id.Group, b.id.Kind)),
			cmp.Compare(a.id.String(), b.id.String()))
	})
	for start := 0; start < len(objects); {
		end := start
		for end < len(objects) && objects[end].wave == objects[start].wave {
			end++
		}
		if err := r.deleteWave(ctx, order, objects[start:end], claims, deadline); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// deletion is one object on its way out.
type deletion struct {
	o      *object
	claims bool // claims go too
	asked  bool
	why    string // it is still there
}

func (r *release) deleteWave(ctx context.Context, order tunnel.Order, objects []*object, claims bool, deadline time.Time) error {
	open := make([]*deletion, len(objects))
	for i, o := range objects {
		open[i] = &deletion{o: o, claims: claims}
	}
	for attempt := 0; ; attempt++ {
		left := open[:0]
		for _, d := range open {
			if err := r.checkpoint(ctx, order); err != nil {
				return err
			}
			gone, err := r.deleteOne(ctx, d)
			if err != nil {
				if ctx.Err() != nil {
					return errStopped
				}
				if c := classify(err, surroundings{}); c == rejected || c == invalid {
					return fmt.Errorf("delete %s: %w", d.o.id, err)
				}
				d.why = explain(err, false)
			}
			if !gone {
				left = append(left, d)
			}
		}
		open = left
		if len(open) == 0 {
			r.showBlocked("")
			return nil
		}
		first := open[0]
		blocked := clip(fmt.Sprintf("waiting for %s to be gone: %s", first.o.id, first.why), maxMessage)
		r.showBlocked(blocked)
		if !r.now().Before(deadline) {
			return &waveError{finding: tunnel.Finding{Status: tunnel.False, Reason: v1alpha1.ReasonPruneFailed, Message: blocked}}
		}
		at := r.now().Add(backoff(attempt, objectRetryMin/4, goneRecheck))
		if deadline.Before(at) {
			at = deadline
		}
		if _, err := r.waitUntil(ctx, order, at, func() bool { return r.anyGone(open) }); err != nil {
			return err
		}
	}
}

// anyGone says whether a watch has seen one of them go.
func (r *release) anyGone(open []*deletion) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range open {
		if d.asked && d.o.missing {
			return true
		}
	}
	return false
}

// deleteOne asks for the deletion of one object, once, if it is the one that we
// applied and still ours; and says whether there is nothing left to do.
func (r *release) deleteOne(ctx context.Context, d *deletion) (gone bool, err error) {
	o := d.o
	res, err := r.resource(ctx, o)
	if err != nil {
		if kindGone(err) {
			r.drop(o)
			return true, nil
		}
		return false, err
	}
	m, err := r.runner.target.look(ctx, res, o.id.Namespace, o.id.Name)
	if apierrors.IsNotFound(err) {
		r.drop(o)
		return true, nil
	}
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	uid, created := o.uid, o.created
	r.mu.Unlock()
	if (uid != "" && m.UID != uid) || m.Annotations[v1alpha1.AnnotationOwner] != r.marks.owner {
		// Not the object that we applied, or no longer ours: none of our business.
		r.drop(o)
		return true, nil
	}
	if keep := kept(o, m, created, d.claims); keep != "" {
		return true, r.keep(ctx, o, keep)
	}
	if m.Deletion != nil || d.asked {
		d.asked = true
		d.why = "is being deleted"
		if len(m.Finalizers) > 0 {
			d.why += ", held by finalizer " + joinFields(m.Finalizers)
		}
		return false, nil
	}
	if isNamespace(o.id) {
		other, err := r.stranger(ctx, o.id.Name)
		if err != nil {
			// Taken for occupied, until it can be told.
			d.why = "it cannot be told whether others have objects in it: " + explain(err, false)
			return false, nil //nolint:nilerr // it is the reason to wait, and shown
		}
		if other != "" {
			return true, r.keep(ctx, o, "others have objects in it, as "+other)
		}
	}
	err = r.runner.target.remove(ctx, res, o.id.Namespace, o.id.Name, m.UID, m.ResourceVersion)
	switch {
	case apierrors.IsNotFound(err):
		r.drop(o)
		return true, nil
	case apierrors.IsConflict(err):
		d.why = "it changed meanwhile"
		return false, nil
	case err != nil:
		return false, err
	}
	d.asked, d.why = true, "is being deleted"
	if len(m.Finalizers) == 0 && instantly(o) {
		r.drop(o)
		return true, nil
	}
	return false, nil
}

// instantly says whether an object without finalizers is gone when the server has
// answered: kinds without a grace period.
func instantly(o *object) bool {
	return o.id.Group != "" || (o.id.Kind != "Pod" && o.id.Kind != "Namespace")
}

// resource says where an object of the inventory lives now: a definition may have
// moved on from the version that it was applied with.
func (r *release) resource(ctx context.Context, o *object) (resource, error) {
	res, err := r.runner.discovery.find(ctx, o.id.Group, o.version, o.id.Kind)
	if errors.Is(err, errUnknownKind) {
		return r.runner.discovery.findAny(ctx, o.id.Group, o.id.Kind)
	}
	return res, err
}

// kindGone says that the server does not know a kind, or an object, for good.
func kindGone(err error) bool { return errors.Is(err, errUnknownKind) || apierrors.IsNotFound(err) }

func groupResource(r *resource) schema.GroupResource {
	return schema.GroupResource{Group: r.group, Resource: r.plural}
}

// drop takes an object out of the inventory.
func (r *release) drop(o *object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropLocked(o)
}

func (r *release) dropLocked(o *object) {
	if r.objects[o.id] != o {
		return
	}
	delete(r.objects, o.id)
	delete(r.drifts, o)
	delete(r.kept, o)
	if o.res != nil {
		r.runner.untrack(o.res, r, o.id)
	}
	r.dirty = true
}
