// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// loadPatiently reads the state, and goes on trying while the API server is away.
func (rn *Runner) loadPatiently(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		err := rn.load(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			rn.log.Error(err, "state not read, will be tried again")
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-rn.clock.After(backoff(attempt, retryMin/4, objectRetryMax)):
		}
	}
}

// load takes in the records. What cannot be verified is not enforced; nothing of it
// is deleted either.
func (rn *Runner) load(ctx context.Context) error {
	err := rn.state.LoadRecords(ctx, func(record *Record) error {
		// There may be one already: an order can be accepted before the state is read.
		r := rn.getOrMake(record.UID)
		r.restore(record)
		if err := r.restoreRules(ctx); err != nil {
			return err
		}
		r.findKinds(ctx)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	return nil
}

// getOrMake gives the release with a UID.
func (rn *Runner) getOrMake(uid string) *release {
	rn.mu.Lock()
	defer rn.mu.Unlock()
	r := rn.releases[uid]
	if r == nil {
		r = rn.newRelease(uid)
		rn.releases[uid] = r
		rn.meter.releases.Set(float64(len(rn.releases)))
	}
	return r
}

func (rn *Runner) newRelease(uid string) *release {
	return &release{
		runner: rn, uid: uid, marks: newMarks(rn.hub, uid), log: rn.log.WithValues("release", uid),
		notify: make(chan struct{}, 1), objects: map[manifest.Identity]*object{},
		drifts: map[*object]time.Time{}, kept: map[*object]map[string]any{}, fights: map[*object]bool{}, unjudged: map[*object]bool{}, waits: map[*object]time.Time{},
		finding: tunnel.Finding{Status: tunnel.Unknown, Reason: v1alpha1.ReasonProgressing},
		counter: rn.moments.next(),
	}
}

// restore sets a release up as its record says. An order that was accepted before
// the record was read stays, if it is newer; nothing was done for it yet.
func (r *release) restore(record *Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.restored {
		return // read twice, since the first reading was cut short
	}
	r.restored = true
	order, signed, ignores := r.order, r.signed, r.rules()
	r.restoreLocked(record)
	if order.Sequence > r.order.Sequence && !r.refuseFencedLocked(order) {
		r.order, r.signed, r.ref = order, signed, order.Release
		r.runner.waves.learn(order)
		r.adoptRulesLocked(ignores)
		r.settled, r.done = false, false
		r.resumed = record.Attempt != nil
	}
}

func (r *release) restoreLocked(record *Record) {
	r.order = tunnel.Order{}
	r.ref, r.signed = record.Release, record.Order
	r.log = r.log.WithValues("name", record.Release.Namespace+"/"+record.Release.Name)
	r.counter = max(r.counter, record.Counter)
	r.reserved = r.counter
	r.restoreHooksLocked(record.Hooks)
	r.applied, r.attempt, r.done, r.op = record.Applied, record.Attempt, record.Done, record.Operation
	renders := map[string]*Render{}
	for _, render := range []*Render{record.Applied, record.Attempt} {
		if render != nil {
			renders[render.Objects.Digest] = render
		}
	}
	for _, e := range record.Inventory {
		o := &object{
			id: e.Identity, version: e.Version, wave: e.Wave, line: int32(e.Line), digest: e.Digest,
			render: renders[e.Render], uid: e.UID, created: e.Created, orphaned: e.Orphaned, since: r.now(),
		}
		if e.Leaving {
			o.leaving = &leaving{since: r.now()}
		}
		o.adopted, o.foreign = e.Adopted, e.Foreign
		if e.Ended != "" {
			o.ended = &ended{uid: e.UID, failed: e.Ended == endedFailed}
		}
		o.restoreState(e)
		r.leaveNumberLocked(o, parseScaling(e.Scaling))
		if want, ok := parseProjection(e.Hash); ok && o.render != nil {
			o.want, o.applied = want, true
		}
		r.objects[o.id] = o
	}
	order, err := decodeOrder(record.Order)
	if err == nil {
		err = r.runner.verify(record.Order)
	}
	var ignores ignoreRules
	if err == nil {
		ignores, err = compileIgnores(order.Ignore)
	}
	if err != nil {
		r.refusal = &tunnel.Finding{
			Status: tunnel.False, Reason: v1alpha1.ReasonOrderRefused,
			Message: clip("the order kept in the cluster: "+err.Error(), maxMessage),
		}
		r.log.Error(err, "the order kept in the cluster is not enforced")
		return
	}
	r.order = order
	r.runner.waves.learn(order)
	r.ignores.Store(&ignores)
	r.restoreRuled(record, order)
	if r.done || (r.applied != nil && r.applied.Sequence == order.Sequence && !r.roundOpenLocked(order)) {
		r.handled, r.settled = order.Sequence, true
		if r.op != nil && r.op.Phase == v1alpha1.PhaseRunning {
			// All was applied; only the wait for health was cut off. What the health is
			// now is told anyway.
			now := r.now()
			r.op.Phase, r.op.FinishedAt, r.op.Deadline, r.op.Message = v1alpha1.PhaseSucceeded, &now, nil, ""
		}
		r.finding = tunnel.Finding{Status: tunnel.True, Reason: v1alpha1.ReasonApplied}
		r.inventoryNew = !r.done
		r.total = len(r.objects)
		for _, o := range r.objects {
			if o.orphaned {
				r.total--
			}
		}
		return
	}
	if record.Held != nil && record.Held.Sequence == order.Sequence && record.Attempt != nil {
		// All but the deletions was done. They are looked at again after a while.
		r.held, r.handled, r.settled = record.Held, order.Sequence, true
		r.finding = heldFinding(record.Held)
		r.retryAt, r.retries = r.now().Add(retryMax), 1
		r.inventoryNew = true
		for _, o := range r.objects {
			if o.render == record.Attempt {
				r.total++
			}
		}
		return
	}
	r.resumed = true
	if r.restoreAttemptsLocked(record.Attempts) {
		return
	}
	r.restAfterLocked()
}

// findKinds finds where the objects live whose kinds were not found yet, and watches
// them. What cannot be told now is asked again after a growing pause.
func (r *release) findKinds(ctx context.Context) {
	type kind struct{ group, version, kind string }
	r.mu.Lock()
	kinds := map[kind]*resource{}
	for _, o := range r.objects {
		if o.res == nil {
			kinds[kind{o.id.Group, o.version, o.id.Kind}] = nil
		}
	}
	r.mu.Unlock()
	var failed error
	moved := map[kind]string{}
	for k := range kinds {
		found, err := r.runner.discovery.find(ctx, k.group, k.version, k.kind)
		if err == nil {
			kinds[k] = r.runner.intern(found)
			continue
		}
		failed = err
		if !errors.Is(err, errUnknownKind) {
			continue
		}
		if now, err := r.runner.discovery.findAny(ctx, k.group, k.kind); err == nil {
			moved[k] = notServed(k.version, k.kind, now.version)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.objects {
		k := kind{o.id.Group, o.version, o.id.Kind}
		if o.res != nil {
			continue
		}
		if res := kinds[k]; res != nil {
			o.res = res
			r.runner.track(res, r, o, false)
		}
		if why := moved[k]; why != o.unseen && o.sight == nil {
			before := o.view()
			o.unseen = why
			r.reviewLocked(o, before, r.now())
		}
	}
	r.locateAt = time.Time{}
	if failed != nil {
		r.log.Info("kind not found, will be asked again", "error", failed.Error())
		r.locateAt = r.now().Add(backoff(r.locateTries, locateRetryMin, locateRetryMax))
		r.locateTries++
	}
}

func decodeOrder(signed tunnel.Signed) (tunnel.Order, error) {
	var order tunnel.Order
	if err := json.Unmarshal(signed.Payload, &order); err != nil {
		return order, fmt.Errorf("decode order: %w", err)
	}
	return order, nil
}
