// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// timeoutOf is the deadline of a wave.
func timeoutOf(order tunnel.Order) time.Duration {
	if order.Policy.TimeoutSeconds <= 0 {
		return defaultTimeout
	}
	return time.Duration(order.Policy.TimeoutSeconds) * time.Second
}

// sync makes the cluster equal to the render that an order names: staged, planned,
// tried, written down, applied wave by wave, pruned, written down, with hooks before
// and after. Whenever it ends in between, it can be begun again and comes to the same
// end. docs/engine.md draws it.
func (r *release) sync(ctx context.Context, order tunnel.Order) error {
	if order.Policy.Suspended {
		return r.holdStill(ctx, order)
	}
	r.begin(v1alpha1.OperationSync, order)
	render := &Render{
		Objects: *order.Objects, Sealed: order.Sealed,
		Namespace: order.Policy.Namespace, Sequence: order.Sequence, Account: order.ServiceAccount,
		Hooks: hooked(order),
	}
	if err := r.stageRules(ctx, order); err != nil {
		return r.failRules(ctx, order, err)
	}
	if err := r.stage(ctx, render); err != nil {
		return r.failSync(ctx, order, err, v1alpha1.ReasonProgressing)
	}
	p, err := r.plan(ctx, order, render)
	if err != nil {
		return r.failSync(ctx, order, err, v1alpha1.ReasonProgressing)
	}
	if len(p.hooks) > 0 {
		render.Items = p.count
	}
	r.mu.Lock()
	r.total = p.count
	r.problems = nil
	r.listLocked(p)
	r.mu.Unlock()
	if finding, bad := p.forbidden(order); bad {
		r.showProblems(p)
		return r.end(ctx, order, finding, errors.New(finding.Message))
	}
	p.running = r.beginRound(order, p, false)
	if err := r.tryAll(ctx, order, p); err != nil {
		return r.failSync(ctx, order, err, v1alpha1.ReasonUnknown)
	}
	if err := r.refuseTurned(ctx, p); err != nil {
		return r.failSync(ctx, order, err, v1alpha1.ReasonUnknown)
	}
	if err := r.checkpoint(ctx, order); err != nil {
		return err
	}
	if finding, bad := p.verdict(); bad {
		r.showProblems(p)
		return r.end(ctx, order, finding, errors.New(finding.Message))
	}
	r.stay(p)
	changed := p.changedKinds()
	if err := r.preSync(ctx, order, p, changed); err != nil {
		return r.failHooked(ctx, order, p, err, v1alpha1.ReasonUnknown)
	}
	done := p.done(r, render)
	if !done {
		r.intendAll(p, render)
		if err := r.save(ctx); err != nil {
			return r.failSync(ctx, order, err, v1alpha1.ReasonUnknown)
		}
	}
	if done && r.complete(p, order) {
		// Other rules or terms for what is applied in full: it stays so, whatever health
		// they find, and no wave of it is left to wait.
		return r.finishSync(ctx, order, p)
	}
	for _, wave := range p.waves {
		if err := r.applyWave(ctx, order, p, wave, changed); err != nil {
			return r.failHooked(ctx, order, p, err, v1alpha1.ReasonApplyFailed)
		}
	}
	return r.finishSync(ctx, order, p)
}

// done says that nothing of the plan has to be written before it is applied: all of
// it is there already.
func (p *plan) done(r *release, render *Render) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, it := range p.items {
		if !it.unchanged {
			return false
		}
	}
	return r.applied != nil && r.applied.Objects == render.Objects
}

// begin shows that an operation runs.
func (r *release) begin(kind string, order tunnel.Order) {
	now := r.now()
	deadline := now.Add(timeoutOf(order))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.op != nil && r.op.Type == kind && r.op.Sequence == order.Sequence && r.retries > 0 {
		// Tried again: what the last attempt said stays until this one knows better.
		return
	}
	r.settled = false
	r.leftBehind, r.alsoLeft = nil, 0
	if r.held != nil && r.held.Sequence != order.Sequence {
		r.held = nil // its order is no more
	}
	r.op = &tunnel.Operation{Type: kind, Phase: v1alpha1.PhaseRunning, Sequence: order.Sequence, StartedAt: now, Deadline: &deadline}
	r.finding = tunnel.Finding{Status: tunnel.Unknown, Reason: v1alpha1.ReasonProgressing}
	r.dirty = true
}

// end shows how an operation ended, and writes it down. err is nil when it went well.
func (r *release) end(ctx context.Context, order tunnel.Order, finding tunnel.Finding, err error) error {
	now := r.now()
	if err != nil {
		finding.Message = r.withAccount(ctx, order, finding.Message)
	}
	finding.Message = clip(finding.Message, maxMessage)
	r.mu.Lock()
	r.settled = true
	r.finding = finding
	if r.op != nil {
		r.op.Phase, r.op.FinishedAt, r.op.Deadline, r.op.Message = v1alpha1.PhaseSucceeded, &now, nil, finding.Message
		switch {
		case isAborted(err):
			r.op.Phase = v1alpha1.PhaseAborted
		case err != nil:
			r.op.Phase = v1alpha1.PhaseFailed
		}
	}
	if err != nil {
		r.countLocked(order, err)
	}
	r.dirty = true
	r.runner.meter.operation(order.Verb, err == nil, now.Sub(r.startedLocked(now)))
	r.mu.Unlock()
	// An attempt that counts is written down before anybody is told of it.
	counts := err != nil && retryLimit(order) >= 0
	if !counts {
		r.report()
	}
	saved := r.save(ctx)
	if counts {
		r.report()
	}
	if saved != nil && ctx.Err() == nil {
		return errors.Join(err, saved)
	}
	return err
}

func (r *release) startedLocked(now time.Time) time.Time {
	if r.op == nil {
		return now
	}
	return r.op.StartedAt
}

// failSync ends a sync that an error stopped. A render that is not what was ordered
// is refused; anything else is tried again.
func (r *release) failSync(ctx context.Context, order tunnel.Order, err error, reason string) error {
	if ctx.Err() != nil {
		return errStopped
	}
	if errors.Is(err, errSuperseded) || errors.Is(err, errStopped) {
		return err
	}
	if r.superseded(order) {
		// It may have failed since its order is no more: the hub gives out no layer of such
		// a one. Nobody has to know; the newer order tells how it goes.
		return errSuperseded
	}
	finding := tunnel.Finding{Status: tunnel.Unknown, Reason: reason, Message: explain(err, false)}
	var refused *renderError
	var failed *waveError
	var stopped *hookError
	switch {
	case errors.As(err, &refused):
		finding.Status, finding.Reason = tunnel.False, refused.reason
	case errors.As(err, &failed):
		finding = failed.finding
	case errors.As(err, &stopped):
		finding.Status, finding.Reason = tunnel.False, v1alpha1.ReasonHookFailed
	}
	return r.end(ctx, order, finding, err)
}

// verdict says whether the dry run found anything for which the whole render is
// held back, and names all of it.
func (p *plan) verdict() (tunnel.Finding, bool) {
	reason := ""
	var names []string
	for _, it := range p.all() {
		if it.failed == nil {
			continue
		}
		var why string
		switch it.class {
		case rejected, invalid:
			why = v1alpha1.ReasonDryRunFailed
			if it.failed.reason == exceptionOwned {
				why = v1alpha1.ReasonOwnedByOther
			}
		case conflicting:
			why = v1alpha1.ReasonConflict
		case cannotTell, deferred, raced, noNamespace:
			continue
		}
		if reason == "" || why == v1alpha1.ReasonDryRunFailed {
			reason = why
		}
		names = append(names, it.id.String()+": "+clip(it.failed.message, 200))
	}
	if len(names) == 0 {
		return tunnel.Finding{}, false
	}
	message := fmt.Sprintf("%d of %d objects refused, nothing applied: %s", len(names), p.count+len(p.hooks), joinObjects(names))
	return tunnel.Finding{Status: tunnel.False, Reason: reason, Message: clip(message, maxMessage)}, true
}

// joinObjects fits as many as a message can hold.
func joinObjects(names []string) string {
	out, used := names[0], 1
	for _, n := range names[1:] {
		if len(out)+len(n) > maxMessage-120 {
			break
		}
		out += "; " + n
		used++
	}
	if more := len(names) - used; more > 0 {
		out += fmt.Sprintf("; and %d more", more)
	}
	return out
}

// showProblems puts what the dry run found into the report, also of objects that
// are not ours yet.
func (r *release) showProblems(p *plan) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems = map[manifest.Identity]planned{}
	for _, it := range p.items {
		if it.failed != nil {
			r.problems[it.id] = planned{problem: *it.failed, since: now}
		}
	}
	for _, h := range p.hooks {
		if h.failed != nil {
			r.problems[h.id] = planned{problem: *h.failed, since: now, hook: true}
		}
	}
	r.dirty = true
}

// listLocked takes down which objects the ordered render has: those that left it, and
// are there as long as it is not applied, count with none of its.
func (r *release) listLocked(p *plan) {
	in := make(map[manifest.Identity]bool, len(p.items))
	for _, it := range p.items {
		in[it.id] = true
	}
	for id, o := range r.objects {
		o.listed = in[id]
	}
}

// intendAll takes the objects of a plan into the inventory, before any is applied.
func (r *release) intendAll(p *plan, render *Render) {
	for _, it := range p.items {
		r.intend(p, it)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempt = render
}

// intend takes one object into the inventory. One that is there keeps what it was
// applied from until it is applied anew.
func (r *release) intend(p *plan, it *item) *object {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.objects[it.id]
	if o == nil {
		o = &object{id: it.id, version: it.version, wave: it.wave, line: it.line, digest: it.digest, since: r.now()}
		// The apply that makes an object cannot change one that exists, so what is
		// found after a crash with our mark was made by us.
		o.created, o.listed = it.checked && !it.found, true
		r.objects[it.id] = o
	}
	if it.unchanged {
		o.line, o.wave, o.render = it.line, it.wave, p.render
	}
	// What was applied in another version is read, compared and repaired in that one
	// until it is applied anew: the server takes what was rendered for it nowhere else.
	if it.res != nil && o.res != it.res && (!o.applied || o.version == it.version) {
		r.settleInLocked(o, it)
	}
	if o.res != nil {
		r.runner.track(o.res, r, o, false)
	}
	return o
}

// settleInLocked takes the resource of an item for an object's.
func (r *release) settleInLocked(o *object, it *item) {
	if o.res != nil && o.res != it.res {
		r.runner.untrack(o.res, r, o.id)
	}
	if o.res != it.res {
		o.unseen = "" // it was where it is not looked for any more
	}
	o.res, o.version = it.res, it.version
}
