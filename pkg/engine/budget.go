// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// A sync that would delete more than its budget applies what is new, and waits with
// the deletions until somebody has confirmed exactly that list. What was let through
// once stays so, over restarts and deadlines, until a render has it again.

// limitOf is how many of total objects an order may delete unconfirmed.
func limitOf(budget *tunnel.DeletionBudget, total int) int {
	if budget == nil {
		budget = &tunnel.DeletionBudget{Count: defaultBudgetCount, Percent: defaultBudgetPercent}
	}
	return max(int(budget.Count), total*int(budget.Percent)/100)
}

// withinBudget says nil when objects may be deleted, and otherwise what to tell.
func (r *release) withinBudget(ctx context.Context, order tunnel.Order, stale []*object, rules deleteRules) (*tunnel.HeldPrune, error) {
	r.mu.Lock()
	r.heldMoved = false
	r.mu.Unlock()
	keeps, err := r.renderedKeeps(ctx, stale, rules)
	if err == nil {
		err = r.lookAtUnseen(ctx, stale, rules)
	}
	if err != nil {
		return nil, err
	}
	total := r.lastTotal(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	leaves := make(map[*object]bool, len(stale))
	for _, o := range stale {
		leaves[o] = true
	}
	var counted []*object
	for _, o := range stale {
		if r.staysWithinLocked(o.id, func(other *object) bool { return leaves[other] }) != "" || isNamespace(o.id) && o.id.Name == rules.target {
			continue
		}
		// What is let through already, gone, never was there or stays anyway costs nothing.
		if o.leaving != nil || o.missing || o.stays || o.isAdopted(o.uid) || (!o.applied && o.uid == "") || keeps[o] != "" || rules.kept(o.id, nil, o.created) != "" {
			continue
		}
		counted = append(counted, o)
	}
	total = max(total, len(stale))
	if len(counted) <= limitOf(order.Policy.Budget, total) {
		return nil, nil
	}
	slices.SortFunc(counted, func(a, b *object) int { return cmp.Compare(a.id.String(), b.id.String()) })
	held := &tunnel.HeldPrune{
		Sequence: order.Sequence, Count: int32(len(counted)), Total: int32(total), Since: r.runner.moments.told(r.now()),
	}
	entries := make([]tunnel.InventoryEntry, 0, len(counted))
	for _, o := range counted {
		if len(held.Objects) < maxHeldObjects {
			held.Objects = append(held.Objects, o.id.String())
		}
		entries = append(entries, tunnel.InventoryEntry{Group: o.id.Group, Kind: o.id.Kind, Namespace: o.id.Namespace, Name: o.id.Name, UID: o.uid})
	}
	held.Digest = tunnel.FenceOf(entries)
	if order.Policy.Confirmed == held.Digest && r.runner.hubTime().Before(order.Policy.ConfirmedUntil) {
		return nil, nil
	}
	if r.held != nil && r.held.Digest == held.Digest && r.held.Sequence == held.Sequence {
		held.Since = r.held.Since
	}
	return held, nil
}

// lookAtUnseen finds out which objects are annotated to be kept where they live, of those
// that no watch has shown in this run.
func (r *release) lookAtUnseen(ctx context.Context, stale []*object, rules deleteRules) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallel)
	for _, o := range stale {
		r.mu.Lock()
		unseen := !o.seen && o.uid != "" && o.leaving == nil
		r.mu.Unlock()
		if !unseen {
			continue
		}
		group.Go(func() error {
			res, err := r.resource(ctx, o)
			if err != nil {
				if kindGone(err) {
					return nil
				}
				return err
			}
			m, err := r.runner.target.look(ctx, res, o.id.Namespace, o.id.Name)
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return err
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			if !o.seen {
				o.stays = rules.annotated(m.Annotations) != ""
			}
			return nil
		})
	}
	return group.Wait()
}

// staysLocked takes in whether an annotation on an object keeps it. A list of deletions
// that wait is made anew when that changes.
func (r *release) staysLocked(o *object, stays bool) {
	if o.stays == stays {
		return
	}
	o.stays = stays
	if r.held == nil {
		return
	}
	r.heldMoved = true
	if !r.carrying && !r.retryAt.IsZero() {
		r.retryAt = r.now()
		r.wakeLocked()
	}
}

// lastTotal is the number of objects of the render that was applied in full last; 0
// when there is none, or it is not there any longer.
func (r *release) lastTotal(ctx context.Context) int {
	r.mu.Lock()
	applied := r.applied
	r.mu.Unlock()
	if applied == nil {
		return 0
	}
	if applied.Items > 0 {
		return applied.Items // hooks do not make the inventory larger
	}
	reader, done, err := r.layers(ctx, applied)
	if err != nil {
		return 0 // the smaller number is the stricter one
	}
	total := reader.Header().Count
	if err := done(); err != nil {
		r.log.V(1).Info("render not closed", "error", err.Error())
	}
	return total
}

// heldFinding says in words what is held.
func heldFinding(held *tunnel.HeldPrune) tunnel.Finding {
	message := fmt.Sprintf("%d of %d objects would be deleted, which is more than syncPolicy.deletionBudget allows; all else is applied. Confirm with kubectl convoy sync --confirm-deletions: %s",
		held.Count, held.Total, joinObjects(held.Objects))
	if more := int(held.Count) - len(held.Objects); more > 0 {
		message += fmt.Sprintf("; in all %d", held.Count)
	}
	return tunnel.Finding{Status: tunnel.False, Reason: v1alpha1.ReasonPruneHeld, Message: clip(message, maxMessage)}
}

// holdPrune ends a sync whose deletions wait to be confirmed. The same list is told
// once, however often it is looked at.
func (r *release) holdPrune(ctx context.Context, order tunnel.Order, held *tunnel.HeldPrune) error {
	finding := heldFinding(held)
	err := fmt.Errorf("%w: %s", errHeld, finding.Message)
	r.mu.Lock()
	same := r.held != nil && r.held.Digest == held.Digest && r.held.Sequence == held.Sequence && r.settled && r.finding == finding
	r.held = held
	if !same {
		r.inventoryNew, r.inventorySent = true, 0 // what is new is there
	}
	r.mu.Unlock()
	if same {
		return err
	}
	return r.end(ctx, order, finding, err)
}

// lift takes back that deletions wait.
func (r *release) lift() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.liftLocked()
}

func (r *release) liftLocked() {
	if r.held != nil {
		r.held, r.dirty = nil, true
	}
}

// isHeld says whether an operation ended because its deletions wait.
func isHeld(err error) bool { return errors.Is(err, errHeld) }
