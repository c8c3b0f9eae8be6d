// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// heals says whether drift is repaired. Where it is not, it is compared and told.
func heals(order tunnel.Order) bool { return order.Policy.Automatic && !order.Policy.Suspended }

// healDueLocked says when the next repair, or comparison, is due; zero: none.
func (r *release) healDueLocked(now time.Time) time.Time {
	if len(r.drifts) == 0 || r.order.Verb != tunnel.VerbApply || r.done {
		return time.Time{}
	}
	var first time.Time
	for o := range r.drifts {
		due, any := r.dueLocked(o, now)
		if any && (first.IsZero() || due.Before(first)) {
			first = due
		}
	}
	return first
}

// dueLocked says when one object that has drifted is due.
func (r *release) dueLocked(o *object, now time.Time) (due time.Time, any bool) {
	if !heals(r.order) && (o.missing || o.other != "" || (o.judged && o.judgedAt == o.rv)) {
		return time.Time{}, false // what there is to say is said
	}
	if o.contest != nil && o.contest.next.After(now) {
		return o.contest.next, true
	}
	return now, true
}

// heal repairs the objects that have drifted and are due, in apply order.
func (r *release) heal(ctx context.Context) {
	ctx = actAs(ctx, r.healer())
	now := r.now()
	r.mu.Lock()
	how := repairNothing
	if heals(r.order) {
		how = repairAll
	}
	var due []*object
	for o := range r.drifts {
		if at, any := r.dueLocked(o, now); any && !at.After(now) {
			due = append(due, o)
		}
	}
	r.mu.Unlock()
	slices.SortFunc(due, func(a, b *object) int {
		return cmp.Or(cmp.Compare(a.wave, b.wave), cmp.Compare(tierOf(a.id.Group, a.id.Kind), tierOf(b.id.Group, b.id.Kind)),
			strings.Compare(a.id.String(), b.id.String()))
	})
	for _, o := range due {
		if ctx.Err() != nil {
			return
		}
		if how == repairAll && r.awaitsNamespace(o) {
			continue
		}
		r.healOne(ctx, o, how)
	}
}

// healOne repairs one object, or finds out how it differs, and records that.
func (r *release) healOne(ctx context.Context, o *object, how repairing) {
	started := r.now()
	r.mu.Lock()
	live, seenAt := r.kept[o], r.drifts[o]
	delete(r.kept, o)
	if o.contest == nil {
		o.contest = newContest(started)
	}
	r.dirty = true
	r.mu.Unlock()

	result, err := r.repairNow(ctx, o, live, how)
	if ctx.Err() != nil {
		return
	}
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.objects[o.id] != o {
		return
	}
	before := o.view()
	defer func() { r.reviewLocked(o, before, now) }()
	if o.contest.passing(err) {
		o.contest.next = now.Add(objectRetryMin)
		return
	}
	if err != nil {
		o.contest.next = now.Add(backoff(o.contest.slow, objectRetryMin, objectRetryMax))
		o.contest.slow++
		var ends *endingError
		if errors.As(err, &ends) {
			o.contest.next = r.endsLocked(o, now)
		}
		o.problem = r.problemOf(o, err)
		r.runner.meter.heal("failed")
		r.log.Info("object not repaired, will be tried again", "object", o.id.String(), "error", o.problem.message)
		return
	}
	if o.contest.next = (time.Time{}); o.problem != nil && o.problem.reason != exceptionContested {
		o.problem = nil
	}
	if how == repairNothing && result.at != 0 {
		o.judged, o.judgedAt, o.differs = true, result.at, result.what
		o.contest.next = now.Add(judgeEvery)
		return
	}
	if !result.changed {
		return
	}
	r.madeLocked(o)
	o.contest.allow(now)
	if o.contest.fought(now) {
		o.problem = contestedProblem(result.manager, result.own)
		r.fights[o] = true
		r.runner.meter.heal("contested")
	} else {
		r.runner.meter.heal("repaired")
	}
	message := clip(o.id.String()+": "+result.what, maxMessage)
	r.log.Info("object repaired", "object", o.id.String(), "what", result.what, "manager", result.manager)
	if r.op == nil || r.op.Phase != v1alpha1.PhaseRunning {
		r.op = &tunnel.Operation{
			Type: v1alpha1.OperationHeal, Phase: v1alpha1.PhaseSucceeded, Sequence: r.order.Sequence,
			StartedAt: seenAt, FinishedAt: &now, Message: message,
		}
		if seenAt.IsZero() {
			r.op.StartedAt = started
		}
		r.saveAt = now.Add(saveAfter)
	}
	r.dirty = true
	r.runner.meter.healed(now.Sub(seenAt))
}

// problemOf says what stands in the way of a repair.
func (r *release) problemOf(o *object, err error) *problem {
	var owned *ownedByOtherError
	if errors.As(err, &owned) {
		return &problem{reason: exceptionOwned, message: owned.Error()}
	}
	var ends *endingError
	if errors.As(err, &ends) {
		return &problem{reason: exceptionTerminating, lasts: true, message: clip("cannot be made again: "+ends.Error(), maxMessage)}
	}
	var fields *conflictError
	if errors.As(err, &fields) {
		return &problem{reason: exceptionConflict, message: clip("cannot be repaired: "+err.Error(), maxMessage)}
	}
	var compared *compareError
	if errors.As(err, &compared) {
		return &problem{
			reason: reasonOf(err), unsure: true,
			message: clip("cannot be compared: "+explain(compared.err, isSecret(o.id)), maxMessage),
		}
	}
	reason := exceptionDrifted
	var gone *collectedError
	if !errors.As(err, &gone) && classify(err, surroundings{}) == cannotTell {
		reason = reasonOf(err)
	}
	return &problem{reason: reason, lasts: gone != nil, message: clip("cannot be repaired: "+explain(err, isSecret(o.id)), maxMessage)}
}

// repairing says what a repair may change.
type repairing uint8

const (
	repairAll     repairing = iota
	repairEntry             // our entry in managedFields, no value
	repairNothing           // it is compared only
)

// repaired is what a repair did, or found.
type repaired struct {
	changed bool
	what    string // fields, and who had changed them
	manager string
	own     bool   // they were changed under our own name
	at      uint64 // the version that was compared and differs
}

// repair makes one object again as we applied it last. live is its state as it was
// seen, nil to read it. A dry run is the judge of whether anything differs.
func (r *release) repair(ctx context.Context, o *object, live map[string]any, how repairing) (repaired, error) {
	r.mu.Lock()
	render, line, digest, res, missing, namespace := o.render, o.line, o.digest, o.res, o.missing, r.order.Policy.Namespace
	r.mu.Unlock()
	if render == nil || res == nil {
		return repaired{}, fmt.Errorf("%s was never applied: %w", o.id, ErrNotStored)
	}
	content, hides, err := r.contentHiding(ctx, render, line, digest)
	if err != nil {
		return repaired{}, err
	}
	if live == nil {
		live, err = r.runner.target.get(ctx, *res, o.id.Namespace, o.id.Name)
		if apierrors.IsNotFound(err) {
			live, err = nil, nil
			missing = true
		}
		if err != nil {
			return repaired{}, err
		}
	}
	if live == nil && missing {
		if how != repairAll {
			return repaired{}, nil
		}
		if r.outlived() {
			// Its namesake may have taken and pruned it: what is gone stays gone.
			r.drop(o)
			return repaired{}, nil
		}
		if r.endedAway(ctx, o, res, content) {
			return repaired{}, nil
		}
		if err := r.collected(ctx, o.id, content); err != nil {
			return repaired{}, err
		}
		out, err := r.makeAgain(ctx, o, *res, content, namespace)
		return out, hiding(err, hides)
	}
	if owner := ownerOf(live); owner != "" && owner != r.marks.owner {
		r.observe(o, live)
		return repaired{}, r.runner.ownedByOther(owner)
	}
	if r.replaced(o, metaText(live, "uid"), ownerOf(live)) {
		return r.takeReplaced(ctx, o, content, live, how)
	}
	if metaText(live, "deletionTimestamp") != "" {
		// It is on its way out; when it is gone it is made again.
		r.settle(o, live)
		return repaired{}, nil
	}
	content, t, err := r.shapeLive(ctx, o, content, live)
	if err != nil {
		return repaired{}, &compareError{err}
	}
	pre := precondition{uid: metaText(live, "uid"), resourceVersion: metaText(live, "resourceVersion")}
	body, err := r.marks.body(content, o.id, pre)
	if err != nil {
		return repaired{}, err
	}
	want, _, err := r.runner.target.apply(ctx, *res, o.id.Namespace, o.id.Name, body, true, true)
	if err != nil {
		return r.repairMended(ctx, o, *res, content, live, t, hiding(err, hides), how)
	}
	differ := changes(live, want, t)
	lost := ownEntry(live) == nil
	if how == repairNothing && (lost || len(differ) > 0) {
		r.observe(o, live)
		out := describe(differ, lost)
		out.changed, out.at = false, parseVersion(pre.resourceVersion)
		return out, nil
	}
	if lost {
		if err := r.ownership(ctx, o, live, want); err != nil {
			return repaired{}, err
		}
		if how == repairEntry {
			return repaired{changed: true}, nil
		}
		if body, err = r.marks.body(content, o.id, precondition{}); err != nil {
			return repaired{}, err
		}
	}
	r.mu.Lock()
	anew := o.other != "" // made again, by us before a restart or by somebody: it becomes ours by an apply
	r.mu.Unlock()
	if len(differ) == 0 && !lost && !anew {
		r.settle(o, live)
		return repaired{}, nil
	}
	if how == repairEntry {
		return repaired{}, nil
	}
	if lost {
		// The patch moved the resource version; the UID still says which object it is.
		metadata, ok := content["metadata"].(map[string]any)
		if ok {
			metadata["uid"] = pre.uid
		}
		if body, err = encode(content); err != nil {
			return repaired{}, err
		}
	}
	answer, _, err := r.runner.target.apply(ctx, *res, o.id.Namespace, o.id.Name, body, true, false)
	if err != nil {
		return repaired{}, hiding(err, hides)
	}
	r.accept(o, answer)
	return describe(differ, lost), nil
}

// settle takes the live state of an object for what it must be: it differs from
// what we applied in spelling only, or is being deleted.
func (r *release) settle(o *object, live map[string]any) {
	r.observe(o, live)
	r.mu.Lock()
	defer r.mu.Unlock()
	before := o.view()
	if o.is(metaText(live, "uid")) && parseVersion(metaText(live, "resourceVersion")) == o.rv {
		o.want = o.live
	}
	r.reviewLocked(o, before, r.now())
}

// makeAgain makes an object that was deleted.
func (r *release) makeAgain(ctx context.Context, o *object, res resource, content map[string]any, namespace string) (repaired, error) {
	body, err := r.marks.body(content, o.id, precondition{create: true})
	if err != nil {
		return repaired{}, err
	}
	around := surroundings{madeNamespace: o.id.Namespace != "" && o.id.Namespace == namespace}
	answer, _, err := r.runner.target.apply(ctx, res, o.id.Namespace, o.id.Name, body, true, false)
	if err != nil {
		switch classify(err, around) {
		case noNamespace:
			if err := r.ensureNamespace(ctx, o.id.Namespace); err != nil {
				return repaired{}, err
			}
			answer, _, err = r.runner.target.apply(ctx, res, o.id.Namespace, o.id.Name, body, true, false)
		case raced:
			// Somebody made it anew: it is judged as what it is now.
			return repaired{}, errors.Join(errRaced, err)
		case rejected, cannotTell, deferred, conflicting, invalid:
		}
		if err != nil {
			return repaired{}, ofNamespace(err, o.id)
		}
	}
	r.accept(o, answer)
	return repaired{changed: true, what: "was deleted, made again"}, nil
}

// describe says in one line what was repaired.
func describe(differ []change, lost bool) repaired {
	out := repaired{changed: true}
	var fields []string
	for _, c := range differ {
		fields = append(fields, c.path)
		if out.manager == "" {
			out.manager = c.managed
		}
		out.own = out.own || c.own
	}
	if lost {
		fields = append(fields, "metadata.managedFields")
	}
	out.what = joinFields(fields)
	if out.manager != "" {
		out.what += fmt.Sprintf(" changed by %q", out.manager)
	}
	return out
}
