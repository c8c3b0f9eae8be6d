// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// waveError ends a sync in the middle.
type waveError struct {
	finding tunnel.Finding
}

func (e *waveError) Error() string { return e.finding.Message }

// applyWave applies the objects of one wave, step by step, retries those that the
// server could not judge, and waits until all are healthy.
func (r *release) applyWave(ctx context.Context, order tunnel.Order, p *plan, wave int32, changed func(groupKind, definition) bool) error {
	deadline := r.now().Add(timeoutOf(order))
	var items []*item
	for _, it := range p.items {
		if it.wave == wave {
			items = append(items, it)
		}
	}
	r.setDeadline(deadline)
	for start := 0; start < len(items); {
		end := start
		for end < len(items) && items[end].tier == items[start].tier {
			end++
		}
		if err := r.checkpoint(ctx, order); err != nil {
			return err
		}
		if err := r.applyStep(ctx, order, p, items[start:end], deadline, changed); err != nil {
			return err
		}
		if isDefinition(items[start].id) {
			// Objects of the kinds that it defines cannot come before they are served.
			if err := r.waitWave(ctx, order, p, items[start:end], deadline, changed); err != nil {
				return err
			}
		}
		start = end
	}
	if last := p.waves[len(p.waves)-1]; wave == last && r.complete(p, order) {
		return nil // nothing waits for this wave; its health is told as it comes
	}
	return r.waitWave(ctx, order, p, items, deadline, changed)
}

func isDefinition(id manifest.Identity) bool {
	return id.Group == "apiextensions.k8s.io" && id.Kind == "CustomResourceDefinition"
}

func (r *release) setDeadline(deadline time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.op != nil && r.op.Phase == v1alpha1.PhaseRunning {
		r.op.Deadline = &deadline
	}
}

// complete says whether all of a plan is applied and nothing has to be pruned.
func (r *release) complete(p *plan, order tunnel.Order) bool {
	for _, it := range p.items {
		if it.failed != nil {
			return false
		}
	}
	stale := r.stale(p)
	if !order.Policy.PruneOrphaned {
		return true
	}
	return len(stale) == 0
}

// applyStep applies objects that do not need each other, in parallel. What cannot
// be applied now is left in item.failed; an error ends the operation. After the deadline
// none is begun any more, but for the first few.
func (r *release) applyStep(ctx context.Context, order tunnel.Order, p *plan, items []*item, deadline time.Time, changed func(groupKind, definition) bool) error {
	todo := map[int32]*item{}
	for _, it := range items {
		if !it.unchanged {
			todo[it.line] = it
		}
	}
	if len(todo) == 0 {
		return nil
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallel)
	left, begun := len(todo), 0
	err := r.contents(ctx, p.render, func(line int32) bool { return todo[line] != nil }, func(e *manifest.Entry) (bool, error) {
		it := todo[int32(e.Line)]
		it.hide(e)
		content, err := e.Object()
		if err != nil {
			return false, err
		}
		left--
		if begun >= maxParallel && !r.now().Before(deadline) {
			it.fail(cannotTell, exceptionUnknown, "was not applied before the deadline")
			return left > 0, nil
		}
		begun++
		group.Go(func() error {
			r.applyOne(gctx, order, p, it, content, changed)
			return nil
		})
		return left > 0 && gctx.Err() == nil, nil
	})
	if waited := group.Wait(); waited != nil {
		return waited
	}
	if err != nil {
		return err
	}
	if err := r.checkpoint(ctx, order); err != nil {
		return err
	}
	var stuck []string
	for _, it := range items {
		if it.failed != nil && (it.class == rejected || it.class == invalid || it.class == conflicting) {
			stuck = append(stuck, it.id.String()+": "+clip(it.failed.message, 200))
		}
	}
	if len(stuck) > 0 {
		return &waveError{finding: tunnel.Finding{
			Status: tunnel.False, Reason: v1alpha1.ReasonApplyFailed,
			Message: clip("not applied: "+joinObjects(stuck), maxMessage),
		}}
	}
	return nil
}

// applyOne applies one object and notes in the item what stands in its way.
func (r *release) applyOne(ctx context.Context, order tunnel.Order, p *plan, it *item, content map[string]any, changed func(groupKind, definition) bool) {
	err := r.applyItem(ctx, order, p, it, content, changed)
	if err == nil || ctx.Err() != nil {
		return
	}
	c := classify(err, p.around(it, order, changed, false))
	var owned *ownedByOtherError
	var kept *keptError
	var fields *conflictError
	var forbidden *forbiddenError
	var ends *endingError
	switch {
	case errors.As(err, &owned):
		it.fail(rejected, exceptionOwned, owned.Error())
	case errors.As(err, &kept):
		it.fail(invalid, exceptionImmutable, kept.Error())
	case errors.As(err, &fields):
		it.fail(conflicting, exceptionConflict, fields.Error())
	case errors.As(err, &forbidden):
		it.fail(rejected, exceptionRejected, forbidden.Error())
	case errors.As(ofNamespace(err, it.id), &ends):
		it.fail(cannotTell, exceptionTerminating, ends.Error())
	case c == deferred && r.lasts(it, err):
		it.fail(rejected, exceptionRejected, it.explain(err))
	case c == rejected, c == invalid, c == conflicting:
		it.fail(c, exceptionRejected, it.explain(err))
	default:
		it.fail(cannotTell, reasonOf(err), it.explain(err))
	}
	logr.FromContextOrDiscard(ctx).V(1).Info("object not applied", "object", it.id.String(), "class", it.class.String(), "error", it.failed.message)
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.objects[it.id]; o != nil {
		before := o.view()
		o.problem = it.failed
		r.reviewLocked(o, before, r.now())
	}
}

// lasts says whether an object is refused for longer than the server takes to follow a
// definition that has changed: then it is the object that is wrong.
func (r *release) lasts(it *item, err error) bool {
	var api apierrors.APIStatus
	if !errors.As(err, &api) || denied(api.Status().Message) {
		return false
	}
	if c := classify(err, surroundings{}); c != rejected && c != invalid || api.Status().Code == http.StatusNotFound {
		return false
	}
	if it.refused.IsZero() {
		it.refused = r.now()
	}
	return r.now().Sub(it.refused) >= schemaLag
}

// waitWave waits until objects are applied and healthy. Those that could not be
// applied are tried again, each after a growing pause.
func (r *release) waitWave(ctx context.Context, order tunnel.Order, p *plan, items []*item, deadline time.Time, changed func(groupKind, definition) bool) error {
	retries := 0
	for {
		var failed []*item
		for _, it := range items {
			if it.failed != nil {
				failed = append(failed, it)
			}
		}
		until := deadline
		if len(failed) > 0 {
			if at := r.now().Add(backoff(retries, objectRetryMin, objectRetryMax)); at.Before(until) {
				until = at
			}
			retries++
		}
		blocked := ""
		met, err := r.waitUntil(ctx, order, until, func() bool {
			blocked = r.blocker(items)
			r.showBlocked(blocked)
			return blocked == ""
		})
		if err != nil || met {
			return err
		}
		if !r.now().Before(deadline) {
			return &waveError{finding: tunnel.Finding{
				Status: tunnel.False, Reason: v1alpha1.ReasonDeadline,
				Message: clip(fmt.Sprintf("after %s still %s", timeoutOf(order), blocked), maxMessage),
			}}
		}
		if len(failed) > 0 {
			slices.SortFunc(failed, func(a, b *item) int { return int(a.line - b.line) })
			if err := r.applyStep(ctx, order, p, failed, deadline, changed); err != nil {
				return err
			}
		}
	}
}

// blocker names what a wave waits for; empty: nothing.
func (r *release) blocker(items []*item) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	more, first := 0, ""
	for _, it := range items {
		var why string
		o := r.objects[it.id]
		switch {
		case it.failed != nil:
			why = it.failed.message
		case o == nil || !o.applied:
			why = "not applied yet"
		case o.blocks():
			why = o.why
			if why == "" {
				why = o.health.String()
			}
		default:
			continue
		}
		if first == "" {
			first = fmt.Sprintf("waiting for %s: %s", it.id, why)
		} else {
			more++
		}
	}
	if more > 0 {
		return clip(fmt.Sprintf("%s (and %d more)", clip(first, maxMessage-40), more), maxMessage)
	}
	return clip(first, maxMessage)
}

func (r *release) showBlocked(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.op == nil || r.op.Message == message {
		return
	}
	r.op.Message = message
	if message != "" && !r.settled {
		r.finding = tunnel.Finding{Status: tunnel.Unknown, Reason: v1alpha1.ReasonBlocked, Message: message}
	}
	r.dirty = true
}
