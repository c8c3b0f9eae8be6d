// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// tryAll makes the dry run of all objects, and of the hooks if they run. It has as long
// as a wave has, and no less than by default: a server that answers slowly must not hold
// the operation for a minute with each object.
func (r *release) tryAll(ctx context.Context, order tunnel.Order, p *plan) error {
	limit := max(timeoutOf(order), defaultTimeout)
	r.setDeadline(r.now().Add(limit))
	trying, cancel := context.WithTimeoutCause(ctx, limit, errTriedTooLong)
	defer cancel()
	err := r.dryRun(trying, order, p)
	if err == nil && p.running {
		err = r.dryRunHooks(trying, order, p)
	}
	if errors.Is(context.Cause(trying), errTriedTooLong) {
		return fmt.Errorf("%w after %s", errTriedTooLong, limit)
	}
	return err
}

// errTriedTooLong: the deadline of the dry run has passed.
var errTriedTooLong = errors.New("the dry run had not ended")

// dryRun tries every object of a plan without changing anything. Afterwards each
// item says what stands in its way: failed with class rejected, invalid or
// conflicting means that nothing of the render may be applied; cannotTell and
// deferred are looked at again when their wave comes.
func (r *release) dryRun(ctx context.Context, order tunnel.Order, p *plan) error {
	r.mu.Lock()
	for _, it := range p.items {
		o := r.objects[it.id]
		if o != nil && o.inSync() && o.digest == it.digest && o.res == it.res && it.res != nil && !o.orphaned && !p.moved(o) && !(o.spent() && o.anew(order)) {
			it.unchanged = true
		}
	}
	r.mu.Unlock()
	changed := p.changedKinds()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallel)
	err := r.contents(ctx, p.render, func(line int32) bool {
		it := p.lines[line-1]
		return it != nil && !it.unchanged && it.class != cannotTell
	}, func(e *manifest.Entry) (bool, error) {
		it := p.lines[e.Line-1]
		it.hide(e)
		content, err := e.Object()
		if err != nil {
			return false, err
		}
		group.Go(func() error {
			r.try(ctx, order, p, it, content, changed)
			return nil
		})
		return ctx.Err() == nil, nil
	})
	if waited := group.Wait(); waited != nil {
		return waited
	}
	return err
}

// changedKinds says of which kinds of the render the definition will change.
func (p *plan) changedKinds() func(groupKind, definition) bool {
	unchanged := map[string]bool{}
	for _, it := range p.items {
		if it.unchanged {
			unchanged[it.digest] = true
		}
	}
	return func(_ groupKind, d definition) bool { return !unchanged[d.digest] }
}

// try makes one dry run and records what it says in the item.
func (r *release) try(ctx context.Context, order tunnel.Order, p *plan, it *item, content map[string]any, changed func(groupKind, definition) bool) {
	err := r.tryOnce(ctx, order, p, it, content)
	if err == nil {
		return
	}
	around := p.around(it, order, changed, true)
	c := classify(err, around)
	if c == noNamespace {
		if err = r.ensureNamespace(ctx, it.id.Namespace); err == nil {
			err = r.tryOnce(ctx, order, p, it, content)
		}
		if err == nil {
			return
		}
		if c = classify(err, around); c == noNamespace {
			c = cannotTell
		}
	}
	var owned *ownedByOtherError
	var fields *conflictError
	var outside *outsideError
	var forbidden *forbiddenError
	var collected *collectedError
	var ends *endingError
	switch {
	case errors.As(err, &owned):
		it.fail(rejected, exceptionOwned, owned.Error())
	case errors.As(err, &outside):
		it.fail(rejected, exceptionRejected, outside.Error())
	case errors.As(err, &forbidden):
		it.fail(rejected, exceptionRejected, forbidden.Error())
	case errors.As(err, &collected):
		it.fail(rejected, exceptionRejected, collected.Error())
	case errors.As(ofNamespace(err, it.id), &ends):
		it.fail(cannotTell, exceptionTerminating, ends.Error())
	case errors.As(err, &fields):
		it.fail(conflicting, exceptionConflict, fields.Error())
	case c == invalid:
		r.tryAnew(ctx, order, it, content, err)
	case c == rejected && mendable(err):
		r.tryRenewed(ctx, it, content, err)
	case c == deferred:
		it.class = deferred
	case c == cannotTell, c == raced:
		it.fail(cannotTell, reasonOf(err), it.explain(err))
	default:
		it.fail(rejected, exceptionRejected, it.explain(err))
	}
}

func (it *item) fail(c class, reason, message string) {
	it.class = c
	it.failed = &problem{reason: reason, message: clip(message, maxMessage)}
}

// reasonOf says whether the server answered at all.
func reasonOf(err error) string {
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		return exceptionUnknown
	}
	return exceptionUnreachable
}

// explain is explain for an item.
func (it *item) explain(err error) string { return explain(hiding(err, it.hides), isSecret(it.id)) }

// hide takes down what must not be told of an item. All of a Secret must not.
func (it *item) hide(e *manifest.Entry) {
	if !isSecret(it.id) {
		it.hides = e.Sealed
	}
}

func isSecret(id manifest.Identity) bool { return id.Group == "" && id.Kind == "Secret" }

// tryOnce dry-runs an item, and learns whose the object is that exists.
func (r *release) tryOnce(ctx context.Context, order tunnel.Order, p *plan, it *item, content map[string]any) error {
	if it.res == nil {
		if err := r.locate(ctx, order, p, it); err != nil {
			return err
		}
	}
	if err := r.runner.mayReach(it); err != nil {
		return err
	}
	if err := permit(order, it); err != nil {
		return err
	}
	it.claim.forced = order.Policy.ForceConflicts
	may, shaped := r.mayLeave(it.id, content), content
	if may && r.hasApplied(it.id) {
		var err error
		if shaped, err = r.shape(ctx, p, it, content); err != nil {
			return err
		}
	}
	for race := 0; race < maxRaces; race++ {
		body, err := r.marks.body(shaped, it.id, precondition{})
		if err != nil {
			return err
		}
		found, m, err := r.runner.target.tryApply(ctx, *it.res, it.id.Namespace, it.id.Name, body, it.force)
		if may && !it.shaped && (found || len(conflictsOf(err)) > 0) {
			// It was not known that it exists.
			if shaped, err = r.shape(ctx, p, it, content); err != nil {
				return err
			}
			continue
		}
		if conflicts := conflictsOf(err); len(conflicts) > 0 && !it.force {
			if err := r.mayForce(ctx, order, it, conflicts); err != nil {
				return err
			}
			it.force = true
			continue
		}
		if isRace(err) && race+1 < maxRaces {
			continue
		}
		if err != nil {
			return err
		}
		if !found {
			it.checked, it.found, it.uid, it.rv = true, false, "", ""
			return nil
		}
		if err := r.mayCollect(ctx, it, content); err != nil {
			return err
		}
		if m.ResourceVersion != it.rv {
			it.plain = false // it was another state that was looked at
		}
		if r.ours(it.id, m) {
			it.checked, it.found, it.uid, it.rv = true, true, m.UID, m.ResourceVersion
			return nil
		}
		return r.lookAt(ctx, it)
	}
	return errRaced
}

// mayReach refuses what is outside of the namespaces that the Runner is bound to,
// before the server is asked: it would say no, but not which namespaces there are.
func (rn *Runner) mayReach(it *item) error {
	if len(rn.namespaces) == 0 {
		return nil
	}
	if _, inside := slices.BinarySearch(rn.namespaces, it.id.Namespace); inside && it.res.namespaced {
		return nil
	}
	return &outsideError{namespace: it.id.Namespace, bound: rn.namespaces}
}

// ours says whether exactly this state of an object was seen with our mark.
func (r *release) ours(id manifest.Identity, m meta) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.objects[id]
	return o != nil && o.applied && o.seen && !o.missing && o.foreign == "" && o.other == "" && o.uid == m.UID && formatVersion(o.rv) == m.ResourceVersion
}

// lookAt reads an object that exists and checks whose it is.
func (r *release) lookAt(ctx context.Context, it *item) error {
	_, err := r.look(ctx, it)
	return err
}

// recognize checks whose a live object is.
func (r *release) recognize(it *item, live map[string]any) error {
	owner := ownerOf(live)
	it.from = nil
	if owner != "" && owner != r.marks.owner {
		var ok bool
		if it.from, ok = r.passes(owner, it.id, metaText(live, "uid")); !ok {
			return r.runner.ownedByOther(owner)
		}
	}
	it.checked, it.found, it.marked = true, true, owner != ""
	it.uid, it.rv = metaText(live, "uid"), metaText(live, "resourceVersion")
	it.claim.takeOver = takesOver(live, owner == "", it.claim.forced)
	if o := r.object(it.id); o != nil {
		if owner == "" {
			r.mu.Lock()
			o.created = false
			r.mu.Unlock()
		}
		// In another version it cannot be compared with what was applied.
		if r.sees(o, it) {
			r.observe(o, live)
		}
	}
	return nil
}

// sees says whether an item is read as its object was applied.
func (r *release) sees(o *object, it *item) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return o.res == nil || o.res == it.res
}

func (r *release) object(id manifest.Identity) *object {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects[id]
}

// mayForce says whether conflicts are ours to win: the policy says so, we applied
// those fields before, or they are left over from kubectl's client-side apply.
func (r *release) mayForce(ctx context.Context, order tunnel.Order, it *item, conflicts []conflict) error {
	live, err := r.look(ctx, it)
	if err != nil {
		return err
	}
	if order.Policy.ForceConflicts {
		return nil
	}
	if it.shaped && it.scaling == scaledByRender && scaledByNobody(live) {
		conflicts = slices.DeleteFunc(slices.Clone(conflicts), func(c conflict) bool { return c.field == ".spec.replicas" })
	}
	var before map[string]any
	r.mu.Lock()
	o := r.objects[it.id]
	var render *Render
	var line int32
	var digest string
	if o != nil && (it.marked || o.uid == it.uid) { // else it is not what we applied
		render, line, digest = o.render, o.line, o.digest
	}
	r.mu.Unlock()
	if render != nil {
		content, err := r.content(ctx, render, line, digest)
		if err != nil {
			return fmt.Errorf("read what was applied before: %w", err)
		}
		if _, err := r.marks.body(content, it.id, precondition{}); err != nil {
			return err
		}
		before = content
	}
	return unforced(conflicts, before, func(manager string) bool {
		return it.claim.takeOver && clientSideManagers.Has(manager) || manager == beforeFirst
	})
}
