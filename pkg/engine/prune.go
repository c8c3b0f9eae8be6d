// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"

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
	for _, h := range p.hooks {
		planned[h.id.String()] = true // let go, see letGo
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
		rules := rulesOf(order, p.count == 0)
		rules.needed = p.hookNamespaces()
		held, err := r.withinBudget(ctx, order, stale, rules)
		if err != nil {
			return err
		}
		if held != nil {
			return r.holdPrune(ctx, order, held)
		}
		r.lift()
		err = r.deleteObjects(ctx, order, stale, rules)
		if err == nil && len(stale) > 0 {
			r.runner.callHeirs(r)
		}
		return err
	}
	if r.disown(stale) {
		r.runner.callHeirs(r)
	}
	return nil
}

// disown lists objects as orphaned, and says whether some of them are that were not.
func (r *release) disown(stale []*object) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.liftLocked()
	for _, o := range stale {
		if !o.applied && o.uid == "" || o.spent() {
			r.dropLocked(o) // only ever intended, or done with
			continue
		}
		before := o.view()
		o.leaving = nil
		if !o.orphaned {
			o.orphaned, o.since, news = true, r.now(), true
		}
		r.reviewLocked(o, before, r.now())
	}
	return news
}

// removeAll carries out a remove order: it deletes what the inventory names.
func (r *release) removeAll(ctx context.Context, order tunnel.Order) error {
	r.begin(v1alpha1.OperationRemove, order)
	r.lift()
	if err := r.save(ctx); err != nil {
		return r.failSync(ctx, order, err, v1alpha1.ReasonUnknown)
	}
	if err := r.yieldToSuccessor(ctx, order); err != nil {
		return err
	}
	p, err := r.preDelete(ctx, order)
	if err != nil {
		return r.failSync(ctx, order, err, v1alpha1.ReasonUnknown)
	}
	r.mu.Lock()
	all := make([]*object, 0, len(r.objects))
	for _, o := range r.objects {
		all = append(all, o)
	}
	r.mu.Unlock()
	first, last := r.hookPlaces(p, all)
	if err := r.deleteObjects(ctx, order, first, rulesOf(order, false)); err != nil {
		return r.failSync(ctx, order, err, v1alpha1.ReasonPruneFailed)
	}
	r.runner.callHeirs(r)
	if err := r.postDelete(ctx, order, p); err != nil {
		return r.failSync(ctx, order, err, v1alpha1.ReasonUnknown)
	}
	if err := r.deleteObjects(ctx, order, last, rulesOf(order, false)); err != nil {
		return r.failSync(ctx, order, err, v1alpha1.ReasonPruneFailed)
	}
	if err := r.leaveHooks(ctx, order); err != nil {
		return r.failSync(ctx, order, err, v1alpha1.ReasonUnknown)
	}
	return r.finishLast(ctx, order)
}

// releaseAll carries out a release order: everything stays, without our marks.
func (r *release) releaseAll(ctx context.Context, order tunnel.Order) error {
	r.begin(v1alpha1.OperationRelease, order)
	r.lift()
	if err := r.save(ctx); err != nil {
		return r.failSync(ctx, order, err, v1alpha1.ReasonUnknown)
	}
	r.mu.Lock()
	all := make([]*object, 0, len(r.objects))
	for _, o := range r.objects {
		all = append(all, o)
	}
	all = append(all, r.hookObjectsLocked()...)
	r.mu.Unlock()
	var failures []error
	for _, o := range all {
		if err := r.checkpoint(ctx, order); err != nil {
			return err
		}
		err := r.unmark(ctx, o)
		if apierrors.IsForbidden(err) && order.ServiceAccount != "" {
			// Letting go must not depend on the rights of an account that may be gone. A
			// mark whose Release is gone holds nothing.
			r.mu.Lock()
			r.leaveLocked(fmt.Sprintf("the marks on %s stay: %s", o.id, explain(err, false)))
			r.mu.Unlock()
			err = nil
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", o.id, err))
			continue
		}
		r.drop(o)
	}
	r.runner.callHeirs(r)
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
	delete(r.scaled, o)
	if o.res != nil {
		r.runner.untrack(o.res, r, o.id)
	}
	r.dirty = true
}
