// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/deliver"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/pkg/tunnel"
)

// decision is what becomes of a render.
type decision struct {
	// order makes a new order for this render; nil: the current one stays.
	order *wanted
	// manual: a newer render waits for somebody to ask for it.
	manual bool
}

// decide is the whole rule of when there is a new order.
//
// An order applies, and so undoes what was changed by hand. In manual mode there
// is one only when it was asked for, with one exception: the order that tells
// the agent that the mode is manual now. Other changes of the terms matter when
// something is applied, and go with the next order.
func decide(asked bool, terms deliver.Terms, cluster types.UID, render wanted, ordered tunnel.Order, isOrdered bool) decision {
	may := terms.Policy.Automatic || asked
	if !isOrdered || types.UID(ordered.ClusterUID) != cluster {
		if may {
			return decision{order: &render}
		}
		return decision{manual: true}
	}
	newer := ordered.Objects.Digest != render.objects.Digest
	switch {
	case asked, may && newer, may && !deliver.TermsOf(ordered).Equal(terms):
		return decision{order: &render}
	case !may && ordered.Policy.Automatic:
		return decision{manual: newer, order: enforced(ordered)}
	}
	return decision{manual: newer}
}

// enforced is the render that the current order names.
func enforced(ordered tunnel.Order) *wanted {
	return &wanted{
		objects: *ordered.Objects, sealed: ordered.Sealed, revision: ordered.Revision, namespace: ordered.Policy.Namespace,
		hooks: slices.Contains(ordered.Requires, tunnel.FeatureHooks),
	}
}

// isOf says whether a render is the one that an order names, for the same place.
func (w *wanted) isOf(ordered tunnel.Order) bool {
	return ordered.Objects != nil && w.objects.Digest == ordered.Objects.Digest && w.namespace == ordered.Policy.Namespace
}

// finish makes the rest of the outcome.
func (r *Reconciler) finish(ctx context.Context, w *work, ready bool) error {
	status := &w.release.Status
	render, revision := status.Render, status.SourceRevision
	if w.rendered != nil {
		w.outcome.Render = w.rendered
		render, revision = &w.rendered.Status, w.rendered.SourceRevision
	}
	current := w.outcome.Rendered == nil && render != nil && (w.rendered != nil || w.inputs == status.InputsHash)
	if current {
		w.made = render
		w.outcome.Rendered = &report.Finding{
			Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRendered,
			Message: report.RenderedMessage(render.Count, revision) + warned(render.Warnings),
		}
	}
	if !ready {
		return nil
	}
	// A request is acted on also when there is nothing to order: the answer is why.
	w.answer(w.request)
	if w.held {
		w.answer(w.answered)
		return nil
	}
	if refused := r.refused(w); refused != nil {
		w.outcome.Waiting = refused
		return nil
	}
	w.outcome.GoOn = w.goOn && (w.asked || current)
	ordered, isOrdered := r.Orders.Ordered(w.release.UID)
	old := status.Order != nil && status.Order.KeyID != r.KeyID
	if old && !isOrdered && !r.resign.AllowN(r.Clock.Now(), 1) {
		// Its key is lost: it is signed anew, as all others are, at a pace that agents and
		// storage can bear.
		w.soon = true
		w.answer(request{})
		w.outcome.GoOn = false
		return nil
	}
	terms := r.terms(w, render)
	here := isOrdered && types.UID(ordered.ClusterUID) == w.cluster.UID
	if !current {
		// What is enforced stays enforced, under the terms of now.
		if here {
			return r.keep(ctx, w, terms, ordered, old)
		}
		return nil
	}
	target := wanted{objects: tunnel.Layer(render.Objects), revision: revision, namespace: terms.Policy.Namespace, hooks: render.Hooks > 0}
	if render.Sealed.Digest != "" {
		sealed := tunnel.Layer(render.Sealed)
		target.sealed = &sealed
	}
	terms, pending, err := r.handOver(ctx, w, target, terms, ordered, here)
	if err != nil {
		return err
	}
	d := decide(w.request.any(), terms, w.cluster.UID, target, ordered, isOrdered)
	if d.manual {
		w.outcome.Waiting = manualSync(revision)
	}
	if d.order != nil && (!here || w.request.any() || !d.order.isOf(ordered)) {
		// What is ordered already may have other terms at any time; a render that is not
		// waits for those that come before.
		blocked := r.blocked(w)
		if blocked == nil {
			blocked = pending
		}
		if blocked != nil {
			if d.order = nil; blocked != pending || !w.hush {
				w.outcome.Waiting = blocked
			}
			// The request is acted on when it can be.
			w.answer(request{confirm: w.request.confirm, hook: w.request.hook})
		}
	}
	switch {
	case d.order != nil:
		d.order.force = w.request.force != ""
		r.order(w, *d.order, terms, ordered)
	case here && w.once(ordered, r.Clock.Now()) != nil, old && isOrdered:
		return r.again(ctx, w, terms, ordered)
	}
	return nil
}

// again makes an order for what is enforced already: somebody asked for something, or
// its key is to be retired.
func (r *Reconciler) again(ctx context.Context, w *work, terms deliver.Terms, ordered tunnel.Order) error {
	terms, _, err := r.handOver(ctx, w, *enforced(ordered), terms, ordered, true)
	switch {
	case err != nil:
		return err
	case types.UID(ordered.ClusterUID) == w.cluster.UID && w.once(ordered, r.Clock.Now()) != nil:
		r.order(w, *enforced(ordered), terms, ordered)
	default:
		r.signAnew(w, ordered, terms)
	}
	return nil
}

// keep enforces what is ordered, while there is no render of now.
func (r *Reconciler) keep(ctx context.Context, w *work, terms deliver.Terms, ordered tunnel.Order, old bool) error {
	terms = inNamespace(w.release, terms, ordered.Policy.Namespace)
	terms, _, err := r.handOver(ctx, w, *enforced(ordered), terms, ordered, true)
	if err != nil {
		return err
	}
	other := !deliver.TermsOf(ordered).Equal(terms) && (terms.Policy.Automatic || ordered.Policy.Automatic)
	switch {
	case other, w.once(ordered, r.Clock.Now()) != nil:
		r.order(w, *enforced(ordered), terms, ordered)
	case old:
		r.signAnew(w, ordered, terms)
	}
	if !terms.Policy.Automatic && w.release.Status.RenderRef != ordered.Objects.Digest {
		w.outcome.Waiting = manualSync(w.release.Status.SourceRevision)
	}
	return nil
}

// signAnew makes the same order again, with the current key, when its turn has come:
// the key that signed it is to be retired some day. In manual mode that waits for a
// sync: an order applies.
func (r *Reconciler) signAnew(w *work, ordered tunnel.Order, terms deliver.Terms) {
	if !terms.Policy.Automatic {
		return
	}
	if w.soon = !r.resign.AllowN(r.Clock.Now(), 1); !w.soon {
		r.order(w, *enforced(ordered), terms, ordered)
	}
}

// order puts a new order into the outcome. ordered is the one before, if there is one.
func (r *Reconciler) order(w *work, target wanted, terms deliver.Terms, ordered tunnel.Order) {
	w.wanted = target
	intent := deliver.Intent{
		Release: w.release, ClusterUID: w.cluster.UID, Revision: target.revision,
		Objects: &w.wanted.objects, Sealed: target.sealed, Hooks: target.hooks,
		Terms: inNamespace(w.release, terms, target.namespace),
	}
	now := r.Clock.Now()
	intent.Once = carried(ordered, target, now)
	if once := w.once(ordered, now); once != nil {
		intent.Once = merged(intent.Once, *once)
	}
	intent.Force = target.force
	w.outcome.Order = r.Orders.Issue(intent)
}

func manualSync(revision string) *report.Finding {
	return &report.Finding{
		Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonManualSync,
		Message: fmt.Sprintf("the render of %s waits for a sync", revision),
	}
}
