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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// clientSideManagers are the names under which kubectl's client-side apply owns
// fields. When an object is adopted, they become ours.
var clientSideManagers = sets.New("kubectl-client-side-apply", "kubectl-create", "kubectl-replace")

// beforeFirst is the manager that the server makes up for an object that had no
// managedFields when it was first applied. It would keep every field for ever.
const beforeFirst = "before-first-apply"

func hasClientSide(live map[string]any) bool {
	for _, e := range managers(live) {
		if !e.applied && clientSideManagers.Has(e.manager) {
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
			// It may have been annotated since it was tried.
			if why, err := r.annotatedToStay(ctx, it, content); err != nil {
				return err
			} else if why != "" {
				return &keptError{why: why}
			}
			if err := r.deleteForReplace(ctx, order, it); err != nil {
				return err
			}
			continue
		}
		if err := r.adoptItem(ctx, it, o); err != nil {
			return err
		}
		if it.takeOver {
			if err := r.takeOver(ctx, it); err != nil {
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
		switch classify(err, p.around(it, order, changed, false)) {
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

// takeOver makes the fields that kubectl's client-side apply left ours, so that
// those which the render lacks go away.
func (r *release) takeOver(ctx context.Context, it *item) error {
	live, err := r.runner.target.get(ctx, *it.res, it.id.Namespace, it.id.Name)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: live}
	if string(object.GetUID()) != it.uid {
		return apierrors.NewConflict(groupResource(it.res), it.id.Name, errRaced)
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(object, clientSideManagers, v1alpha1.FieldManager)
	if err != nil {
		return fmt.Errorf("take fields over from kubectl: %w", err)
	}
	if patch == nil {
		it.takeOver = false
		return nil
	}
	m, err := r.runner.target.patch(ctx, *it.res, it.id.Namespace, it.id.Name, typeJSONPatch, patch)
	if err != nil {
		return err
	}
	it.rv, it.takeOver = m.ResourceVersion, false
	return nil
}

// deleteForReplace deletes an object of ours whose immutable field changes, and
// waits until it is gone.
func (r *release) deleteForReplace(ctx context.Context, order tunnel.Order, it *item) error {
	err := r.runner.target.remove(ctx, *it.res, it.id.Namespace, it.id.Name, it.uid, it.rv, metav1.DeletePropagationBackground)
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
