// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// clientSideManagers are the names under which kubectl owns the fields of what it made
// from a file. When an object is adopted, they become ours.
var clientSideManagers = sets.New("kubectl-client-side-apply", "kubectl-create", "kubectl-replace")

// helmManager is the name under which Helm owns the fields of what it made, where it
// does not apply at the server. A release of it may be in use: its place is taken only
// where conflicts are forced.
const helmManager = "helm"

// lastApplied is where clients that apply by themselves keep what they applied. Who owns
// it is such a client, whatever its name.
var lastApplied = []string{"f:metadata", "f:annotations", "f:kubectl.kubernetes.io/last-applied-configuration"}

// beforeFirst is the manager that the server makes up for an object that had no
// managedFields when it was first applied. It would keep every field for ever.
const beforeFirst = "before-first-apply"

// clientSide says whether a manager is such a client.
func clientSide(e managerEntry, forced bool) bool {
	if e.applied || e.subresource != "" {
		return false
	}
	if clientSideManagers.Has(e.manager) {
		return true
	}
	keeps := owns(e.fields, lastApplied)
	return keeps && (forced || e.manager == beforeFirst) || forced && e.manager == helmManager
}

// takesOver says whether fields of an object are to be taken over: when it is adopted,
// or where only its adoption made them somebody's.
func takesOver(live map[string]any, adopted, forced bool) bool {
	for _, e := range managers(live) {
		if clientSide(e, forced) && (adopted || e.manager == beforeFirst) {
			return true
		}
	}
	return false
}

// applyItem makes one object as the render says. What was found of it before must
// still hold when the server carries it out; if not, it is looked at again.
func (r *release) applyItem(ctx context.Context, order tunnel.Order, p *plan, it *item, content map[string]any, changed func(groupKind, definition) bool) error {
	if it.res == nil {
		if err := r.locate(ctx, order, p, it); err != nil {
			return err
		}
	}
	// Its kind may have been found only now.
	if err := permit(order, it); err != nil {
		return err
	}
	o := r.intend(p, it)
	if err := r.restoreFirst(ctx, o, it); err != nil {
		return err
	}
	may := r.mayLeave(it.id, content)
	it.claim.forced = order.Policy.ForceConflicts
	mended := false
	for race := 0; race < maxRaces; race++ {
		var err error
		if !it.checked {
			it.plain = false
			if err := r.lookAt(ctx, it); err != nil {
				return err
			}
		}
		if !it.found && r.spentItem(ctx, order, p, it, o, content) {
			return nil
		}
		if it.replace && it.found {
			if err := r.carryNumber(ctx, p, it, content); err != nil {
				return err
			}
			// It may have been annotated, or own data, since it was tried.
			if kept, err := r.staysInPlace(ctx, it, content); err != nil {
				return err
			} else if kept != nil {
				return kept
			}
			if err := r.deleteForReplace(ctx, order, it); err != nil {
				return err
			}
			continue
		}
		if err := r.adoptItem(ctx, it, o); err != nil {
			return err
		}
		if it.found && !it.claim.none() {
			if err := r.takeOver(ctx, it, content); err != nil {
				it.checked = false
				if apierrors.IsConflict(err) {
					continue
				}
				return err
			}
		}
		shaped := content
		if may && it.found && !it.plain {
			if shaped, err = r.shape(ctx, p, it, content); err != nil {
				return err
			}
		}
		if !it.found {
			it.scaling = firstScaling(p, it.id, content)
		}
		body, err := r.marks.body(shaped, it.id, precondition{uid: it.uid, resourceVersion: it.rv, create: !it.found})
		if err != nil {
			return err
		}
		live, created, err := r.runner.target.apply(ctx, *it.res, it.id.Namespace, it.id.Name, body, it.force, false)
		if err == nil {
			r.applyDone(p, it, o, live, created)
			return nil
		}
		if conflicts := conflictsOf(err); len(conflicts) > 0 && !it.force {
			if err := r.mayForce(ctx, order, it, conflicts); err != nil {
				return err
			}
			it.force = true
			continue
		}
		c := classify(err, p.around(it, order, changed, false))
		if c != raced && !mended && it.found && mendable(err) {
			now, looked := r.look(ctx, it)
			if looked != nil {
				return looked
			}
			if mended, err = r.mend(ctx, it, content, now, err); mended {
				continue
			}
		}
		switch c {
		case raced:
			it.checked = false
		case noNamespace:
			if err := r.ensureNamespace(ctx, it.id.Namespace); err != nil {
				return err
			}
		case rejected, cannotTell, deferred, conflicting, invalid:
			return err
		}
	}
	return errRaced
}

// applyDone records that an object is as the render says.
func (r *release) applyDone(p *plan, it *item, o *object, live map[string]any, created bool) {
	r.mu.Lock()
	r.leaveNumberLocked(o, it.scaling)
	o.line, o.wave, o.digest, o.render = it.line, it.wave, it.digest, p.render
	r.settleInLocked(o, it)
	o.orphaned = false
	o.created = o.created || created
	r.runner.track(o.res, r, o, true)
	r.mu.Unlock()
	it.failed, it.class = nil, 0
	it.checked = false
	if it.from != nil {
		it.from.relinquish(it.id)
		it.from = nil
	}
	r.accept(o, live)
	if it.id.Group == "apiextensions.k8s.io" {
		for gk := range p.kinds {
			r.runner.discovery.forget(gk.group)
		}
	}
}

// restoreFirst brings an object back to what we applied last, before something new
// is applied: only so does the server know which of its fields were ours, and takes
// away those that the new render leaves out.
func (r *release) restoreFirst(ctx context.Context, o *object, it *item) error {
	r.mu.Lock()
	due := o.drifted() && !o.missing && o.render != nil && o.digest != it.digest
	if o.other != "" && it.checked && !it.marked && it.uid == o.other {
		due = false // what is there is not what we applied
	}
	gone := o.entryGone
	resumed := r.resumed
	moves := o.res != it.res
	r.mu.Unlock()
	if !due || (resumed && !gone) {
		return nil
	}
	it.checked = false
	how := repairAll
	if resumed {
		how = repairEntry
	}
	_, err := r.repairNow(ctx, o, nil, how)
	if moves && kindGone(err) {
		return nil // the version that it was applied in is not served any more
	}
	if err != nil {
		return fmt.Errorf("bring back what was applied before: %w", err)
	}
	return nil
}

// takeOver makes the fields ours that kubectl's client-side apply left, and those that
// stand beside fields of the render, so that what the render lacks goes away.
func (r *release) takeOver(ctx context.Context, it *item, content map[string]any) error {
	live, err := r.runner.target.get(ctx, *it.res, it.id.Namespace, it.id.Name)
	if err != nil {
		return err
	}
	version, err := r.stake(ctx, *it.res, it.id, it.uid, content, live, it.claim, r.sparedNow(it.id, content, live, it.scaling))
	if err != nil {
		return err
	}
	it.rv, it.claim = version, claim{forced: it.claim.forced}
	return nil
}

// deleteForReplace deletes an object of ours whose immutable field changes, and
// waits until it is gone.
func (r *release) deleteForReplace(ctx context.Context, order tunnel.Order, it *item) error {
	err := r.runner.target.remove(ctx, *it.res, it.id.Namespace, it.id.Name, it.uid, it.rv, replacements[groupKind{it.id.Group, it.id.Kind}])
	switch {
	case apierrors.IsNotFound(err):
	case apierrors.IsConflict(err):
		it.checked = false
		return nil
	case err != nil:
		return err
	}
	deadline := r.now().Add(timeoutOf(order))
	for attempt := 0; ; attempt++ {
		m, err := r.runner.target.look(ctx, *it.res, it.id.Namespace, it.id.Name)
		if apierrors.IsNotFound(err) || (err == nil && m.UID != it.uid) {
			it.checked = false
			return nil
		}
		if err != nil {
			return err
		}
		if !r.now().Before(deadline) {
			return fmt.Errorf("deleted to be made anew, but it is still there, finalizers %s", joinFields(m.Finalizers))
		}
		select {
		case <-ctx.Done():
			return errStopped
		case <-r.runner.clock.After(backoff(attempt, objectRetryMin/4, objectRetryMax)):
		}
	}
}

// ensureNamespace makes the namespace that an order names. It carries no mark of
// ours and is never pruned.
func (r *release) ensureNamespace(ctx context.Context, name string) error {
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	})
	if err != nil {
		return fmt.Errorf("encode namespace: %w", err)
	}
	_, _, err = r.runner.target.call(ctx, request{
		verb: "create", method: http.MethodPost, path: "/api/v1/namespaces",
		query: url.Values{"fieldManager": {v1alpha1.FieldManager}}, contentType: typeJSON, accept: typeMeta, body: body,
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make namespace %s: %w", name, err)
	}
	return nil
}

// ownership puts our entry back into managedFields of an object that is ours, where
// somebody has emptied the list, and leaves the values alone. want is the answer of
// a dry run of what we applied.
func (r *release) ownership(ctx context.Context, o *object, live, want map[string]any) error {
	wanted, ok, err := unstructured.NestedSlice(want, "metadata", "managedFields")
	if err != nil || !ok {
		return fmt.Errorf("the answer to a dry run has no managedFields: %w", errors.Join(err, errRaced))
	}
	kept := wanted[:0:0]
	for _, item := range wanted {
		if m, ok := item.(map[string]any); ok && text(m["manager"]) != beforeFirst {
			kept = append(kept, m)
		}
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "add", "path": "/metadata/managedFields", "value": kept},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": metaText(live, "resourceVersion")},
	})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	_, err = r.runner.target.patch(ctx, *o.res, o.id.Namespace, o.id.Name, typeJSONPatch, patch)
	return err
}
