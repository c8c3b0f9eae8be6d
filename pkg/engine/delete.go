// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// deletion is one object on its way out.
type deletion struct {
	o        *object
	rules    deleteRules
	rendered string // why what was applied last says that it stays; empty: it does not
	step     int    // of its wave, see deleteStep
	wave     int32  // it is deleted in: its own, or a lower one for what it holds
	asked    bool
	why      string // it is still there
	// holds: a finalizer keeps it, or may, so that the steps that follow wait. later: its
	// own step was not begun for that.
	holds, later bool
	unsure       bool // another Release may want it, which could not be read
}

// leaving is what is known of an object that was let through to be deleted.
type leaving struct {
	since time.Time
	why   string // it is still there; empty: its deletion was not asked for yet
	told  bool   // that it takes long
}

// deleteObjects deletes objects against the order of waves and kinds. Before a lower
// wave is begun the objects of the one above are gone. From the first on none of them
// is repaired any more, whatever happens in between.
func (r *release) deleteObjects(ctx context.Context, order tunnel.Order, objects []*object, rules deleteRules) error {
	if len(objects) == 0 {
		return nil
	}
	rendered, err := r.renderedKeeps(ctx, objects, rules)
	if err != nil {
		return err
	}
	if r.condemn(objects) {
		// A restart in between must know that these were let through.
		if err := r.save(ctx); err != nil {
			return err
		}
	}
	all := make([]*deletion, len(objects))
	for i, o := range objects {
		all[i] = &deletion{o: o, rules: rules, rendered: rendered[o], step: r.deleteStep(o)}
	}
	afterContents(all)
	slices.SortFunc(all, func(a, b *deletion) int {
		return -cmp.Or(cmp.Compare(a.wave, b.wave), cmp.Compare(a.step, b.step), cmp.Compare(a.o.id.String(), b.o.id.String()))
	})
	deadline := r.now().Add(timeoutOf(order))
	for start := 0; start < len(all); {
		end := start
		for end < len(all) && all[end].wave == all[start].wave {
			end++
		}
		if err := r.deleteWave(ctx, order, slices.Clone(all[start:end]), deadline); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// condemn notes that objects were let through to be deleted, and says whether that
// has to be written down.
func (r *release) condemn(objects []*object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	news := false
	for _, o := range objects {
		if o.leaving != nil {
			continue
		}
		before := o.view()
		o.leaving = &leaving{since: r.now()}
		r.reviewLocked(o, before, r.now())
		news = true
	}
	return news
}

// stay takes back that objects of a plan were let through to be deleted: the newest
// render has them again.
func (r *release) stay(p *plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, it := range p.items {
		if o := r.objects[it.id]; o != nil && o.leaving != nil {
			before := o.view()
			o.leaving = nil
			r.reviewLocked(o, before, r.now())
		}
	}
}

// deleteWave asks for the deletion of the objects of one wave, step by step, kinds that
// others need last, and waits until all are really gone.
func (r *release) deleteWave(ctx context.Context, order tunnel.Order, open []*deletion, deadline time.Time) error {
	for attempt := 0; ; attempt++ {
		left, err := r.deletePass(ctx, order, open, deadline)
		if err != nil {
			return err
		}
		open = left
		if len(open) == 0 {
			r.showBlocked("")
			return nil
		}
		blocked := blocked(open)
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

// deletePass goes over the objects of a wave once, those of one step in parallel, and
// returns those that are still there. One that cannot be deleted does not keep the
// others of its step, nor does it keep those of the steps that follow unless a finalizer
// holds it: all of these are asked for before the first failure is told. After the
// deadline none is begun any more, but for the first few.
func (r *release) deletePass(ctx context.Context, order tunnel.Order, open []*deletion, deadline time.Time) (left []*deletion, err error) {
	unread := r.askHeirs(ctx) // told where it holds an object
	gone := make([]bool, len(open))
	failures := make([]error, len(open))
	held := false
	for start := 0; start < len(open); {
		end := start
		for end < len(open) && open[end].step == open[start].step {
			end++
		}
		if held {
			for _, d := range open[start:] {
				d.later = true
			}
			break
		}
		if err := r.checkpoint(ctx, order); err != nil {
			return nil, err
		}
		var group errgroup.Group
		group.SetLimit(maxParallel)
		for i := start; i < end; i++ {
			open[i].later = false
			group.Go(func() error {
				if i >= maxParallel && !r.now().Before(deadline) {
					open[i].why = cmp.Or(open[i].why, "its deletion was not asked for before the deadline")
					return nil
				}
				if r.checkpoint(ctx, order) == nil {
					gone[i], failures[i] = r.deleteOne(ctx, open[i])
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
		for i := start; i < end; i++ {
			held = held || open[i].holds && !gone[i]
		}
		start = end
	}
	if err := r.checkpoint(ctx, order); err != nil {
		return nil, err
	}
	var refused []string
	for i, d := range open {
		if failure := failures[i]; failure != nil {
			d.why = explain(failure, false)
			if c := classify(failure, surroundings{}); c == rejected || c == invalid {
				refused = append(refused, d.o.id.String()+": "+clip(d.why, 200))
				r.note(d.o, &problem{reason: exceptionRejected, message: clip("cannot be deleted: "+d.why, maxMessage)})
			}
		}
		if !gone[i] {
			if d.unsure && unread != nil {
				d.why = clip("it cannot be told "+explain(unread, false), maxMessage)
			}
			left = append(left, d)
		}
	}
	if len(refused) > 0 {
		return nil, &waveError{finding: tunnel.Finding{
			Status: tunnel.False, Reason: v1alpha1.ReasonPruneFailed,
			Message: clip("not deleted: "+joinObjects(refused), maxMessage),
		}}
	}
	return left, nil
}

// note shows what stands in the way of an object.
func (r *release) note(o *object, p *problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := o.view()
	o.problem = p
	r.reviewLocked(o, before, r.now())
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
	r.mu.Lock()
	d.holds, d.unsure = o.held, false
	r.mu.Unlock()
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
	d.holds = heldByOthers(m.Finalizers)
	r.mu.Lock()
	uid, created, adopted := o.uid, o.created, o.isAdopted(m.UID)
	r.mu.Unlock()
	if !r.mine(uid, m) {
		// Not the object that we applied, or no longer ours: none of our business.
		r.drop(o)
		return true, nil
	}
	if m.Deletion != nil || d.asked {
		// Asked for, by whomever: it is waited for, and never asked for again.
		d.asked = true
		d.why = "is being deleted"
		if len(m.Finalizers) > 0 {
			d.why += ", held by finalizer " + joinFields(m.Finalizers)
		}
		r.terminating(o, d.why, m)
		return false, nil
	}
	if adopted {
		return r.keep(ctx, o, madeByOthers)
	}
	if keep := d.rules.kept(o.id, m.Annotations, created); keep != "" {
		return r.keep(ctx, o, keep)
	}
	if isNamespace(o.id) && o.id.Name == d.rules.target {
		return r.keep(ctx, o, "it is the target namespace")
	}
	if d.rendered != "" {
		return r.keep(ctx, o, d.rendered+", as it was applied")
	}
	switch why, waits, err := r.boundData(ctx, o, res, d.rules); {
	case err != nil:
		return false, err
	case waits:
		d.why = why
		return false, nil
	case why != "":
		return r.keep(ctx, o, why)
	}
	heir, unknown := r.heir(o.id)
	switch {
	case heir != "":
		return r.keep(ctx, o, "Release "+heir+" has it in its render")
	case unknown != "":
		d.unsure, d.why = true, "it cannot be told yet whether Release "+unknown+" has it in its render"
		return false, nil
	}
	if hook := d.rules.needed[o.id.Name]; hook != "" && isNamespace(o.id) {
		return r.keep(ctx, o, "hook "+hook+" is made in it")
	}
	if what := r.staysWithin(o.id); what != "" {
		return r.keep(ctx, o, holdsOwn(what))
	}
	there, err := r.others(ctx, o, res, d.rules)
	var left *leftByHookError
	switch {
	case errors.As(err, &left):
		return r.keep(ctx, o, left.Error())
	case apierrors.IsForbidden(err):
		return r.keep(ctx, o, "it cannot be told whether others have objects that would go with it: "+explain(err, false))
	case err != nil:
		// Taken for occupied, until it can be told.
		d.why = "it cannot be told whether others have objects that would go with it: " + explain(err, false)
		return false, nil
	case there.why != "":
		return r.keep(ctx, o, there.why)
	case there.wait != "":
		d.why = there.wait + " in it is not deleted yet"
		return false, nil
	}
	err = r.runner.target.remove(ctx, res, o.id.Namespace, o.id.Name, m.UID, m.ResourceVersion, d.rules.propagation)
	switch {
	case apierrors.IsNotFound(err):
		r.drop(o)
		return true, nil
	case apierrors.IsConflict(err):
		// It may hold a finalizer now.
		d.holds, d.why = true, "it changed meanwhile"
		return false, nil
	case err != nil:
		return false, err
	}
	d.asked, d.why = true, "is being deleted"
	if len(m.Finalizers) == 0 && d.rules.instantly(o) {
		r.drop(o)
		return true, nil
	}
	r.terminating(o, d.why, meta{})
	return false, nil
}

// terminating shows that an object is being deleted and still there, since when, and
// what holds it.
func (r *release) terminating(o *object, why string, m meta) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.leaving == nil {
		o.leaving = &leaving{since: r.now()}
	}
	if !o.leaving.told && m.Deletion != nil && r.now().Sub(o.leaving.since) >= leavingAfter {
		// The inventory says so too, however long the operation waits for it.
		o.leaving.told = true
		r.roughenLocked(o)
		o.health, o.why = terminating, why
		r.inventoryNew, r.inventorySent, r.inventoryDue = true, 0, true
		r.dirty = true
		r.wakeLocked()
	}
	if o.leaving.why == why {
		return
	}
	if o.leaving.why == "" {
		o.leaving.since = r.now()
	}
	if m.Deletion != nil && m.Deletion.Time.Before(o.leaving.since) {
		o.leaving.since = m.Deletion.Time
	}
	o.leaving.why, o.problem = why, nil
	r.dirty = true
	r.wakeLocked()
}

// liftedLocked is called when an object that was let through is gone: an operation that
// ended while it waited for such goes on at once when there is none left.
func (r *release) liftedLocked(o *object) {
	if o.leaving == nil || o.leaving.why == "" {
		return
	}
	r.dirty = true
	for _, other := range r.objects {
		if other.leaving != nil && other.leaving.why != "" && !other.missing {
			return
		}
	}
	gaveUp := r.finding.Reason == v1alpha1.ReasonPruneFailed || r.finding.Reason == v1alpha1.ReasonRetriesEnded
	if !r.carrying && (!r.retryAt.IsZero() || gaveUp) {
		r.retryAt = r.now()
	}
	r.wakeLocked()
}

// instantly says whether an object without finalizers is gone when the server has
// answered: kinds without a grace period, and not with dependents that go first.
func (d deleteRules) instantly(o *object) bool {
	return d.propagation == metav1.DeletePropagationBackground && (o.id.Group != "" || (o.id.Kind != "Pod" && o.id.Kind != "Namespace"))
}
