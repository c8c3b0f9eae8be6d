// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// reportDueLocked says when the next report is due; zero: nothing to say.
func (r *release) reportDueLocked() time.Time {
	if !r.dirty {
		return time.Time{}
	}
	return r.reportedAt.Add(reportEvery)
}

// report says what is known of the Release, if that has changed since it was said
// last.
func (r *release) report() {
	r.mu.Lock()
	r.dirty = false
	out := r.buildLocked()
	sum, err := fingerprint(out)
	if err != nil {
		r.mu.Unlock()
		r.log.Error(err, "report not made")
		return
	}
	defer r.tellReady(out)
	if sum == r.reported {
		r.mu.Unlock()
		return
	}
	r.reported, r.reportedAt = sum, r.now()
	r.counter++
	out.Counter, out.At = r.counter, r.runner.moments.told(r.reportedAt)
	if r.counter >= r.reserved && r.saveAt.IsZero() {
		r.saveAt = r.reportedAt // the next counters must be written down before a restart
	}
	if r.inventoryNew && out.Inventory != nil {
		if r.inventorySent == 0 {
			r.inventorySent = r.counter
		}
		r.sent, r.inventoryDue = tunnel.FenceOf(out.Inventory), false
	}
	if r.done && r.doneAt == 0 {
		r.doneAt = r.counter
	}
	r.mu.Unlock()
	r.runner.meter.report()
	r.runner.out(out)
}

// fingerprint of a report without what differs in each.
func fingerprint(out tunnel.Report) ([32]byte, error) {
	raw, err := json.Marshal(out)
	if err != nil {
		return [32]byte{}, fmt.Errorf("encode report: %w", err)
	}
	return sha256.Sum256(raw), nil
}

// buildLocked makes the report, without counter and time.
func (r *release) buildLocked() tunnel.Report {
	out := tunnel.Report{
		Release: r.ref, Sequence: r.order.Sequence, Applied: r.finding, Done: r.done,
		Refused: r.refusal, RefusedSequence: r.refused, Held: r.held,
	}
	if r.applied != nil {
		out.AppliedRef = r.applied.Objects.Digest
	}
	out.Operation = r.runner.moments.operation(r.op)
	out.Hooks = r.hookRunsLocked()
	s := r.tallyLocked(&out)
	out.Counts.Total = int32(max(r.total, 0))
	out.InSync, out.Healthy = r.inSyncLocked(s), r.unruledLocked(healthyFinding(s, s.applied, r.total))
	if r.done {
		out.InSync, out.Healthy = r.finding, r.finding
	}
	out.Settled = r.settled && s.moving == 0 && s.unseen == 0 && len(r.drifts) == s.stuck
	out.Exceptions, out.More = sortExceptions(out.Exceptions)
	// An empty inventory is told of a render that was applied in full and has no
	// objects, not of an order that failed before there were any.
	if r.inventoryNew && (r.settled || r.inventoryDue) && !r.done && (len(r.objects) > 0 || r.applied != nil) {
		out.Inventory = r.inventoryLocked()
	}
	return out
}

// tally is what the objects of a Release add up to.
type tally struct {
	syncTally
	applied, unseen, moving, bad, unknown, suspended int
	// ordered are in the render of the order, and applied from it; stays left it, and are
	// still to be deleted.
	ordered, stays                        int
	firstBad, firstMoving, firstSuspended string
}

func (r *release) tallyLocked(out *tunnel.Report) tally {
	var s tally
	render := digestOf(r.order.Objects)
	add := func(o *object, reason, message string) {
		out.Exceptions = append(out.Exceptions, tunnel.Exception{
			Group: o.id.Group, Kind: o.id.Kind, Namespace: o.id.Namespace, Name: o.id.Name,
			Reason: reason, Message: clip(message, maxMessage), Since: r.runner.moments.told(o.since),
		})
	}
	failed, strays := int32(0), 0
	for id, o := range r.objects {
		if o.orphaned {
			out.Counts.Orphaned++
			add(o, exceptionOrphaned, "left the render and was not pruned")
			continue
		}
		if o.leaving != nil || o.render != nil && o.render.Objects.Digest != render {
			if !o.missing {
				s.stays++
			}
		}
		if o.leaving != nil && o.problem == nil {
			if o.leaving.why != "" && !o.missing {
				add(o, exceptionTerminating, o.leaving.why)
				out.Exceptions[len(out.Exceptions)-1].Since = r.runner.moments.told(o.leaving.since)
			}
			continue
		}
		if o.applied {
			s.applied++
		}
		if o.applied && o.render != nil && o.render.Objects.Digest == render && o.there() {
			out.Counts.Applied++
			s.ordered++
		}
		if o.applied && !o.seen && o.unseen == "" {
			s.unseen++
			continue
		}
		if _, known := r.problems[id]; known {
			if o.drifted() && o.problem != nil {
				s.stuck++ // that it cannot be repaired is told too
			}
			continue
		}
		drifted := s.drifted
		if s.addLocked(r, o, add) {
			failed++
		}
		listed := o.listed || o.render != nil && o.render.Objects.Digest == render
		if !listed {
			strays += s.drifted - drifted
		}
		if o.unseen != "" {
			s.unknown++
			first(&s.firstMoving, o.id.String()+": "+o.unseen)
			continue
		}
		switch {
		case o.health == healthy, o.rests():
			if listed {
				out.Counts.Healthy++
			}
		case !o.applied:
			s.moving++
		case o.health == degraded:
			s.bad++
			s.firstBad = cmp.Or(s.firstBad, o.id.String()+": "+o.why)
			add(o, exceptionDegraded, o.why)
		case o.health == suspended:
			s.suspended++
			s.firstSuspended = cmp.Or(s.firstSuspended, o.id.String()+": "+o.why)
			add(o, exceptionSuspended, o.why)
		case o.health == healthUnknown:
			s.unknown++
			s.firstMoving = cmp.Or(s.firstMoving, o.id.String()+": "+o.why)
			add(o, exceptionUnknown, o.why)
		default:
			if blocksWave(o.id.Kind, o.id.Group) && (!o.missing || heals(r.order) && o.foreign == "" && (o.problem == nil || !o.problem.lasts)) {
				s.moving++
			}
			s.firstMoving = cmp.Or(s.firstMoving, o.id.String()+": "+o.why)
			if !o.drifted() && !(o.missing && o.foreign != "") {
				add(o, exceptionProgressing, o.why)
			}
		}
	}
	for id, p := range r.problems {
		if !p.hook {
			failed++
		}
		out.Exceptions = append(out.Exceptions, tunnel.Exception{
			Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name,
			Reason: p.reason, Message: p.message, Since: r.runner.moments.told(p.since),
		})
	}
	out.Counts.Drifted, out.Counts.Failed = int32(s.drifted-strays), failed
	if r.settled && r.op != nil && (r.op.Phase == v1alpha1.PhaseFailed || r.op.Phase == v1alpha1.PhaseAborted) {
		// The deadline has passed: what still moves is told when it changes, and what
		// is known now is worth writing down.
		s.moving = 0
	}
	return s
}

func (r *release) inSyncLocked(s tally) tunnel.Finding {
	if finding, said := s.findingLocked(r); said {
		return finding
	}
	// All is there too while hooks that come after it run, or have failed.
	whole := r.finding.Status == tunnel.True || r.roundOpenLocked(r.order) && r.round.Half
	switch {
	case whole && s.unseen == 0:
		return tunnel.Finding{Status: tunnel.True, Reason: v1alpha1.ReasonInSync}
	case whole:
		return tunnel.Finding{Status: tunnel.Unknown, Reason: v1alpha1.ReasonUnknown, Message: fmt.Sprintf("%d objects not looked at yet", s.unseen)}
	}
	message := "the ordered render is not applied"
	if r.total > 0 && s.ordered == r.total && s.unseen == 0 && !r.refusedLocked() {
		message = "all objects of the ordered render are as they were applied"
		if s.stays > 0 {
			message += fmt.Sprintf(", %d that left it are not deleted yet", s.stays)
		}
	}
	return tunnel.Finding{Status: r.finding.Status, Reason: r.finding.Reason, Message: message}
}

// refusedLocked says whether an object of the ordered render stands in the way of it.
func (r *release) refusedLocked() bool {
	for _, p := range r.problems {
		if !p.hook {
			return true
		}
	}
	return false
}

func healthyFinding(s tally, applied, total int) tunnel.Finding {
	switch {
	case s.bad > 0:
		return tunnel.Finding{Status: tunnel.False, Reason: v1alpha1.ReasonDegraded, Message: clip(counted(s.firstBad, s.bad), maxMessage)}
	case s.firstMoving != "" && s.unknown == 0:
		return tunnel.Finding{Status: tunnel.False, Reason: v1alpha1.ReasonProgressing, Message: clip(s.firstMoving, maxMessage)}
	case s.firstMoving != "", s.unseen > 0:
		return tunnel.Finding{Status: tunnel.Unknown, Reason: v1alpha1.ReasonUnknown, Message: clip(s.firstMoving, maxMessage)}
	case s.suspended > 0:
		return tunnel.Finding{Status: tunnel.Unknown, Reason: v1alpha1.ReasonSuspended, Message: clip(counted(s.firstSuspended, s.suspended), maxMessage)}
	case applied == 0 && total > 0 && s.moving == 0:
		return tunnel.Finding{Status: tunnel.Unknown, Reason: v1alpha1.ReasonUnknown, Message: "nothing was applied yet"}
	case s.moving > 0:
		return tunnel.Finding{Status: tunnel.Unknown, Reason: v1alpha1.ReasonProgressing, Message: fmt.Sprintf("%d objects not applied yet", s.moving)}
	}
	return tunnel.Finding{Status: tunnel.True, Reason: v1alpha1.ReasonHealthy}
}

func counted(first string, n int) string {
	if n <= 1 {
		return first
	}
	return fmt.Sprintf("%s (and %d more)", clip(first, maxMessage-40), n-1)
}

// sortExceptions puts the worst first and keeps as many as a report may have.
func sortExceptions(all []tunnel.Exception) ([]tunnel.Exception, int32) {
	slices.SortFunc(all, func(a, b tunnel.Exception) int {
		return cmp.Or(
			cmp.Compare(severity(a.Reason), severity(b.Reason)), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Reason, b.Reason),
		)
	})
	if len(all) <= maxExceptions {
		return all, 0
	}
	return all[:maxExceptions:maxExceptions], int32(len(all) - maxExceptions)
}

// sortedLocked lists the objects in apply order.
func (r *release) sortedLocked() []*object {
	all := make([]*object, 0, len(r.objects))
	for _, o := range r.objects {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *object) int {
		return cmp.Or(cmp.Compare(a.wave, b.wave), cmp.Compare(a.line, b.line), cmp.Compare(a.id.String(), b.id.String()))
	})
	return all
}

func (r *release) inventoryLocked() []tunnel.InventoryEntry {
	all := r.sortedLocked()
	entries := make([]tunnel.InventoryEntry, 0, len(all))
	for _, o := range all {
		entries = append(entries, tunnel.InventoryEntry{
			Group: o.id.Group, Version: o.version, Kind: o.id.Kind, Namespace: o.id.Namespace, Name: o.id.Name,
			UID: o.uid, Wave: o.wave, Digest: o.digest, Health: o.health.String(), Orphaned: o.orphaned,
		})
	}
	return entries
}

// save writes the record of the Release down.
func (r *release) save(ctx context.Context) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	if r.stopping {
		r.mu.Unlock()
		return nil // its record is being deleted
	}
	r.saveAt, r.endedNew = time.Time{}, false
	r.reserved = r.counter + counterBlock
	record := &Record{
		UID: r.uid, Release: r.ref, Order: r.signed, Applied: r.applied, Attempt: r.attempt,
		Done: r.done, Rules: r.rulesInUseLocked(), Counter: r.reserved, Operation: r.runner.moments.operation(r.op), Inventory: make([]Entry, 0, len(r.objects)),
		Hooks: r.hooksLocked(),
		Held:  r.held, Attempts: r.attemptsLocked(),
	}
	for _, o := range r.sortedLocked() {
		e := Entry{
			Identity: o.id, Version: o.version, Wave: o.wave, Line: int(o.line), Digest: o.digest,
			UID: o.uid, Created: o.created, Orphaned: o.orphaned, Leaving: o.leaving != nil, Scaling: o.scaling.String(),
		}
		e.Adopted, e.Foreign = o.adopted, clip(o.foreign, maxMessage)
		if o.over() {
			e.Ended = o.ended.String()
		}
		if o.applied {
			e.Hash = o.want.String()
		}
		if o.render != nil {
			e.Render = o.render.Objects.Digest
		}
		r.saveStateLocked(o, &e)
		record.Inventory = append(record.Inventory, e)
	}
	r.mu.Unlock()
	err := r.runner.state.SaveRecord(ctx, record)
	if err != nil {
		r.mu.Lock()
		r.saveAt = r.now().Add(retryMin)
		r.mu.Unlock()
		return fmt.Errorf("write state of release %s: %w", r.uid, err)
	}
	return nil
}
