// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/deliver"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/pkg/tunnel"
)

// policyOf is the part of the spec that the engine acts on, for a render. Its
// namespace is the one that the render was made for, whatever the spec says now.
func policyOf(release *v1alpha1.Release, render *v1alpha1.RenderStatus) tunnel.Policy {
	namespace := release.Namespace
	if render != nil && render.TargetNamespace != "" {
		namespace = render.TargetNamespace
	}
	p := release.Spec.SyncPolicy
	timeout := defaultTimeout
	if p.Timeout != nil && p.Timeout.Duration > 0 {
		timeout = p.Timeout.Duration
	}
	return tunnel.Policy{
		Automatic:      p.Automatic == nil || *p.Automatic,
		TimeoutSeconds: max(int64(timeout.Seconds()), 1),
		ForceConflicts: p.Conflicts == v1alpha1.ConflictsForce,
		Replace:        p.Immutable == v1alpha1.ImmutableReplace,
		PruneOrphaned:  p.Prune.Orphaned == nil || *p.Prune.Orphaned,
		AllowEmpty:     p.Prune.AllowEmpty,
		Namespace:      namespace,
	}
}

// gate looks at the Cluster. While it is missing or away nothing is rendered
// and nothing ordered.
func (r *Reconciler) gate(w *work) bool {
	name := w.release.Spec.ClusterRef.Name
	cluster, ok := r.Cache.Cluster(types.NamespacedName{Namespace: w.release.Namespace, Name: name})
	if ok && cluster.Status.Reachable && cluster.DeletionTimestamp == nil {
		if r.Orders.Compared(cluster.UID) {
			w.cluster = cluster
			return true
		}
		// The hub may have been restored from an older copy, and the agent may hold what
		// it does not remember: nothing is ordered before the agent has said so. It has
		// no session yet, or its session is a moment old.
		if w.soon = r.wants(w, cluster); w.soon {
			// Until then nothing that it said before is true of what is wanted now.
			w.outcome.Waiting = &report.Finding{
				Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClusterNotReady,
				Message: fmt.Sprintf("the agent of Cluster %q has not said yet what it holds", name),
			}
		}
		return false
	}
	w.again = true
	ordered, isOrdered := r.Orders.Ordered(w.release.UID)
	if !waits(w, ordered, isOrdered) {
		return false
	}
	message := fmt.Sprintf("there is no Cluster %q", name)
	if ok {
		message = fmt.Sprintf("the agent of Cluster %q has no session", name)
	}
	w.outcome.Waiting = &report.Finding{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClusterNotReady, Message: message}
	return false
}

// wants says whether there may be something to order, as far as is known without a
// render.
func (r *Reconciler) wants(w *work, cluster *v1alpha1.Cluster) bool {
	ordered, isOrdered := r.Orders.Ordered(w.release.UID)
	return w.rendering() || w.goOn || w.request.any() || !isOrdered || types.UID(ordered.ClusterUID) != cluster.UID || !ordered.Policy.Equal(policyOf(w.release, w.release.Status.Render))
}

// adopted says what becomes of an order that the agent gave back to this hub, which
// had lost it: it stays, until a change of the inputs or of the spec, or a sync that
// somebody asked for since, goes on from there.
func (w *work) adopted() {
	status := &w.release.Status
	if status.Adopted == nil {
		return
	}
	if !w.request.since(status.Adopted.At.Time) {
		w.answered, w.request = w.request, request{}
	}
	w.asked = w.request.any() || w.release.Generation != status.ObservedGeneration
	w.goOn = w.asked || w.inputs != "" && w.inputs != status.Adopted.InputsHash
	w.held = !w.goOn
}

// since says whether one of the requests was made after a time. One whose value is no
// time was made by hand, and counts.
func (q request) since(t time.Time) bool {
	for _, value := range []string{q.sync, q.force} {
		if value == "" {
			continue
		}
		if asked, err := time.Parse(time.RFC3339Nano, value); err != nil || asked.After(t) {
			return true
		}
	}
	return false
}

// waits says whether something newer than what is applied is held back by a
// cluster that is away.
func waits(w *work, ordered tunnel.Order, isOrdered bool) bool {
	status := &w.release.Status
	switch {
	case status.AppliedRef == "", w.request.any(), !isOrdered:
		return true
	case w.inputs != "" && w.inputs != status.InputsHash:
		return true
	case status.RenderRef != status.AppliedRef:
		return true
	}
	policy := policyOf(w.release, status.Render)
	return !ordered.Policy.Equal(policy) && (policy.Automatic || ordered.Policy.Automatic)
}

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
// the agent that the mode is manual now. Other changes of the policy matter when
// something is applied, and go with the next order.
func decide(asked bool, policy tunnel.Policy, cluster types.UID, render wanted, ordered tunnel.Order, isOrdered bool) decision {
	may := policy.Automatic || asked
	if !isOrdered || types.UID(ordered.ClusterUID) != cluster {
		if may {
			return decision{order: &render}
		}
		return decision{manual: true}
	}
	newer := ordered.Objects.Digest != render.objects.Digest
	switch {
	case asked, may && newer, may && !ordered.Policy.Equal(policy):
		return decision{order: &render}
	case !may && ordered.Policy.Automatic:
		return decision{manual: newer, order: enforced(ordered)}
	}
	return decision{manual: newer}
}

// enforced is the render that the current order names.
func enforced(ordered tunnel.Order) *wanted {
	return &wanted{objects: *ordered.Objects, sealed: ordered.Sealed, revision: ordered.Revision, namespace: ordered.Policy.Namespace}
}

// finish makes the rest of the outcome.
func (r *Reconciler) finish(w *work, ready bool) {
	status := &w.release.Status
	render, revision := status.Render, status.SourceRevision
	if w.rendered != nil {
		w.outcome.Render = w.rendered
		render, revision = &w.rendered.Status, w.rendered.SourceRevision
	}
	current := w.outcome.Rendered == nil && render != nil && (w.rendered != nil || w.inputs == status.InputsHash)
	if current {
		w.outcome.Rendered = &report.Finding{
			Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRendered,
			Message: report.RenderedMessage(render.Count, revision),
		}
	}
	if !ready {
		return
	}
	// A request is acted on also when there is nothing to order: the answer is why.
	w.outcome.SyncRequest, w.outcome.ForceRequest = w.request.sync, w.request.force
	if w.held {
		w.outcome.SyncRequest, w.outcome.ForceRequest = w.answered.sync, w.answered.force
		return
	}
	w.outcome.GoOn = w.goOn && (w.asked || current)
	ordered, isOrdered := r.Orders.Ordered(w.release.UID)
	old := status.Order != nil && status.Order.KeyID != r.KeyID
	if old && !isOrdered && !r.resign.AllowN(r.Clock.Now(), 1) {
		// Its key is lost: it is signed anew, as all others are, at a pace that agents and
		// storage can bear.
		w.soon = true
		w.outcome.SyncRequest, w.outcome.ForceRequest, w.outcome.GoOn = "", "", false
		return
	}
	policy := policyOf(w.release, render)
	if !current {
		// What is enforced stays enforced, under the policy of now.
		policy.Namespace = ordered.Policy.Namespace
		if isOrdered && types.UID(ordered.ClusterUID) == w.cluster.UID {
			switch {
			case !ordered.Policy.Equal(policy) && (policy.Automatic || ordered.Policy.Automatic):
				r.order(w, *enforced(ordered), policy)
			case old:
				r.signAnew(w, ordered, policy)
			}
			if !policy.Automatic && status.RenderRef != ordered.Objects.Digest {
				w.outcome.Waiting = manualSync(status.SourceRevision)
			}
		}
		return
	}
	target := wanted{objects: tunnel.Layer(render.Objects), revision: revision, namespace: policy.Namespace}
	if render.Sealed.Digest != "" {
		sealed := tunnel.Layer(render.Sealed)
		target.sealed = &sealed
	}
	d := decide(w.request.any(), policy, w.cluster.UID, target, ordered, isOrdered)
	if d.manual {
		w.outcome.Waiting = manualSync(revision)
	}
	switch {
	case d.order != nil:
		r.order(w, *d.order, policy)
	case old && isOrdered:
		r.signAnew(w, ordered, policy)
	}
}

// signAnew makes the same order again, with the current key, when its turn has come:
// the key that signed it is to be retired some day. In manual mode that waits for a
// sync: an order applies.
func (r *Reconciler) signAnew(w *work, ordered tunnel.Order, policy tunnel.Policy) {
	if !policy.Automatic {
		return
	}
	if w.soon = !r.resign.AllowN(r.Clock.Now(), 1); !w.soon {
		r.order(w, *enforced(ordered), policy)
	}
}

// order puts a new order into the outcome.
func (r *Reconciler) order(w *work, target wanted, policy tunnel.Policy) {
	w.wanted = target
	policy.Namespace = target.namespace
	w.outcome.Order = r.Orders.Issue(deliver.Intent{
		Release: w.release, ClusterUID: w.cluster.UID, Revision: target.revision,
		Objects: &w.wanted.objects, Sealed: target.sealed, Policy: policy,
	})
}

func manualSync(revision string) *report.Finding {
	return &report.Finding{
		Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonManualSync,
		Message: fmt.Sprintf("the render of %s waits for a sync", revision),
	}
}
