// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// observed is everything that the conditions of a Release are made of. Whoever
// has nothing new to say about a part leaves it out, and the previous answer
// stays: after a restart the stored conditions are all that is known.
type observed struct {
	// At is the time of a transition, in whole seconds.
	At metav1.Time

	// Generation is the one that Rendered and Ordered are about, and
	// PreviousGeneration the one that Previous was about.
	Generation         int64
	PreviousGeneration int64
	Previous           []metav1.Condition

	// Rendered is what became of the render for Generation; nil: not looked at.
	Rendered *Finding
	// Waiting says why something newer than what is applied is held back
	// (ClusterNotReady, ManualSync); nil: nothing is.
	Waiting *Finding
	// Ordered is the sequence of the current order, PreviousOrdered of the one
	// that Previous was about; 0: none.
	Ordered         int64
	PreviousOrdered int64
	// AppliedInFull: the digest that is ordered is the one last applied in full.
	AppliedInFull bool

	// Report is the newest one of the agent; nil: none that is not in Previous.
	Report *tunnel.Report
	// Silent is set when the cluster's session is gone.
	Silent *Silence
	// Deleting is what a deletion waits for.
	Deleting *Finding
	// Adopted is the sequence of an order that the agent gave back; 0: the current
	// order is the hub's own.
	Adopted int64
	// Reset: another target stands behind the Cluster, and what was reported is void.
	Reset bool
}

// Silence tells that nothing is heard of a cluster.
type Silence struct {
	// Reason is Disconnected, or ClusterNotReady when the Cluster does not exist.
	Reason string
	// Cluster is its name.
	Cluster string
	// Dialled: the hub dials it, so that no agent goes on in it.
	Dialled bool
	// LastReport is when the Release's state was last recorded; zero: never.
	LastReport time.Time
}

// conditions makes the conditions of a Release, in a fixed order. It is the
// only place where one is made. Unknown is never True, and a transition time
// moves only with the status.
func conditions(o observed) []metav1.Condition {
	c := composer{observed: o}
	rendered := c.keep(v1alpha1.ConditionRendered, c.rendered())
	c.current = rendered.Status == metav1.ConditionTrue && o.Waiting == nil
	applied := c.keep(v1alpha1.ConditionApplied, c.applied(rendered))
	inSync := c.keep(v1alpha1.ConditionInSync, c.state(v1alpha1.ConditionInSync))
	healthy := c.keep(v1alpha1.ConditionHealthy, c.state(v1alpha1.ConditionHealthy))
	ready := c.keep(v1alpha1.ConditionReady, c.ready(rendered, applied, inSync, healthy))
	return []metav1.Condition{ready, rendered, applied, inSync, healthy}
}

// composer carries what was observed through the single conditions.
type composer struct {
	observed
	// current: the order is the one that Generation asks for.
	current bool
}

// answer is a finding and the generation that it is about; generation 0 leaves
// it to keep.
type answer struct {
	Finding
	generation int64
}

func (c composer) previous(kind string) *metav1.Condition {
	for i := range c.Previous {
		if c.Previous[i].Type == kind {
			return &c.Previous[i]
		}
	}
	return nil
}

// keep turns an answer into a condition, with the old transition time where the
// status did not change.
func (c composer) keep(kind string, a answer) metav1.Condition {
	out := metav1.Condition{
		Type: kind, Status: a.Status, Reason: a.Reason, Message: a.Message,
		ObservedGeneration: a.generation, LastTransitionTime: c.At,
	}
	if old := c.previous(kind); old != nil && old.Status == a.Status {
		out.LastTransitionTime = old.LastTransitionTime
	}
	return out
}

// stays repeats the previous answer. The order that it is about may have been
// found to be right for a newer generation too; then it is about that one.
func (c composer) stays(kind string, missing Finding) answer {
	old := c.previous(kind)
	if old == nil {
		return answer{missing, c.Generation}
	}
	generation := old.ObservedGeneration
	if c.current && generation == c.PreviousGeneration && c.Ordered == c.PreviousOrdered {
		generation = c.Generation
	}
	return answer{Finding{old.Status, old.Reason, old.Message}, generation}
}

// about is the generation that a report on the current order is about.
func (c composer) about(kind string) int64 {
	if old := c.previous(kind); old != nil && !c.current {
		return old.ObservedGeneration
	}
	return c.Generation
}

func (c composer) rendered() answer {
	if c.Rendered != nil {
		return answer{*c.Rendered, c.Generation}
	}
	missing := Finding{metav1.ConditionUnknown, v1alpha1.ReasonUnknown, "not rendered yet"}
	switch {
	case c.Waiting == nil:
	case c.Waiting.Reason == v1alpha1.ReasonClusterNotReady:
		missing.Reason, missing.Message = c.Waiting.Reason, "rendered when the cluster is reachable"
	default:
		missing.Reason = c.Waiting.Reason
	}
	old := c.previous(v1alpha1.ConditionRendered)
	if old == nil || old.Status == metav1.ConditionUnknown {
		return answer{missing, c.Generation}
	}
	return answer{Finding{old.Status, old.Reason, old.Message}, old.ObservedGeneration}
}

func (c composer) applied(rendered metav1.Condition) answer {
	switch {
	case c.Reset && c.Ordered != 0:
		return answer{resetFinding(), c.Generation}
	case c.Waiting != nil:
		return answer{*c.Waiting, c.Generation}
	case c.Ordered == 0 && rendered.Status == metav1.ConditionFalse:
		return answer{Finding{metav1.ConditionFalse, rendered.Reason, "nothing was rendered yet that could be applied"}, c.Generation}
	case c.Ordered == 0:
		return answer{Finding{metav1.ConditionUnknown, v1alpha1.ReasonNotReported, "nothing was ordered yet"}, c.Generation}
	}
	if r := c.Report; r != nil {
		if r.Sequence > c.Ordered {
			return answer{c.ahead(r), c.Generation}
		}
		if f, ok := c.refused(r); ok {
			return answer{f, c.Generation}
		}
		if r.Sequence == c.Ordered {
			f := agentFinding(r.Applied)
			f.Message = clip(f.Message+refusalNote(r), maxMessage)
			return answer{c.adopted(f), c.about(v1alpha1.ConditionApplied)}
		}
	}
	if c.Ordered != c.PreviousOrdered {
		if c.Ordered == c.Adopted {
			return answer{Finding{metav1.ConditionUnknown, v1alpha1.ReasonHubBehind, behindNote(c.Adopted)}, c.Generation}
		}
		return answer{c.progressing(), c.Generation}
	}
	old := c.previous(v1alpha1.ConditionApplied)
	if old != nil && (heldBack(old) || old.Reason == v1alpha1.ReasonHubBehind && c.Adopted == 0) {
		// What was held back, or adopted, is so no longer: what is applied speaks again.
		if c.AppliedInFull {
			return answer{Finding{metav1.ConditionTrue, v1alpha1.ReasonApplied, ""}, c.Generation}
		}
		return answer{c.progressing(), c.Generation}
	}
	return c.stays(v1alpha1.ConditionApplied, c.progressing())
}

// ahead is what is known while the agent holds a newer order than the hub.
func (c composer) ahead(r *tunnel.Report) Finding {
	message := fmt.Sprintf("HubBehind: the agent holds order %d, which is newer than order %d of this hub; nothing is rolled back", r.Sequence, c.Ordered)
	return Finding{metav1.ConditionUnknown, v1alpha1.ReasonHubBehind, message}
}

// adopted marks what an agent says of an order that it gave back.
func (c composer) adopted(f Finding) Finding {
	if c.Adopted == 0 || c.Adopted != c.Ordered {
		return f
	}
	note := behindNote(c.Adopted)
	if f.Status == metav1.ConditionTrue {
		f.Reason, f.Message = v1alpha1.ReasonHubBehind, note
		return f
	}
	f.Message = clip(f.Message+"; "+note, maxMessage)
	return f
}

// refused names an order that the agent did not accept, when it is the current one.
func (c composer) refused(r *tunnel.Report) (Finding, bool) {
	if r.Refused == nil {
		return Finding{}, false
	}
	current := r.RefusedSequence == c.Ordered
	unnamed := r.RefusedSequence == 0 && r.Sequence < c.Ordered
	if !current && !unnamed {
		return Finding{}, false
	}
	f := agentFinding(*r.Refused)
	f.Status = metav1.ConditionFalse
	if f.Reason == v1alpha1.ReasonUnknown {
		f.Reason = v1alpha1.ReasonOrderRefused
	}
	f.Message = clip(fmt.Sprintf("the agent refused order %d: %s; what it enforced before stays enforced", c.Ordered, f.Message), maxMessage)
	return f, true
}

// refusalNote names a refused order that is not the current one.
func refusalNote(r *tunnel.Report) string {
	if r.Refused == nil {
		return ""
	}
	f := agentFinding(*r.Refused)
	lead := ""
	if r.Applied.Message != "" {
		lead = "; "
	}
	return fmt.Sprintf("%sorder %d was refused (%s): %s", lead, r.RefusedSequence, f.Reason, f.Message)
}

func (c composer) progressing() Finding {
	return Finding{metav1.ConditionFalse, v1alpha1.ReasonProgressing, fmt.Sprintf("order %d is on its way", c.Ordered)}
}

// state is InSync or Healthy: they are about what is enforced, whichever order
// that is of.
func (c composer) state(kind string) answer {
	missing := Finding{metav1.ConditionUnknown, v1alpha1.ReasonNotReported, "the agent has not reported yet"}
	if c.Reset && c.Ordered != 0 {
		return answer{resetFinding(), c.Generation}
	}
	if c.Silent != nil {
		old := c.previous(kind)
		if old == nil || old.Reason == v1alpha1.ReasonNotReported {
			return c.stays(kind, missing)
		}
		message := fmt.Sprintf("nothing is heard of cluster %q; the agent goes on enforcing", c.Silent.Cluster)
		switch {
		case c.Silent.Reason == v1alpha1.ReasonClusterNotReady:
			message = fmt.Sprintf("cluster %q does not exist", c.Silent.Cluster)
		case c.Silent.Dialled:
			message = fmt.Sprintf("the hub does not reach cluster %q; nothing is repaired there meanwhile", c.Silent.Cluster)
		}
		if !c.Silent.LastReport.IsZero() {
			message += "; state last recorded at " + c.Silent.LastReport.UTC().Format(time.RFC3339)
		}
		return answer{Finding{metav1.ConditionUnknown, c.Silent.Reason, message}, old.ObservedGeneration}
	}
	if c.Report == nil || c.Report.Sequence == 0 {
		return c.stays(kind, missing)
	}
	f := agentFinding(c.Report.InSync)
	if kind == v1alpha1.ConditionHealthy {
		f = agentFinding(c.Report.Healthy)
	}
	generation := c.about(kind)
	if c.Report.Sequence != c.Ordered {
		if old := c.previous(kind); old != nil {
			generation = old.ObservedGeneration
		}
	}
	return answer{f, generation}
}

// ready sums the others up: what is False goes before what is Unknown, and the
// earlier step before the later.
func (c composer) ready(steps ...metav1.Condition) answer {
	if c.Deleting != nil {
		return answer{Finding{metav1.ConditionFalse, c.Deleting.Reason, c.Deleting.Message}, c.Generation}
	}
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		for _, step := range steps {
			if step.Status == status {
				return answer{Finding{status, step.Reason, clip(step.Type+": "+step.Message, maxMessage)}, c.Generation}
			}
		}
	}
	message := "rendered, applied, in sync and healthy"
	for _, step := range steps {
		if step.Reason == v1alpha1.ReasonHubBehind {
			message = step.Message
		}
	}
	return answer{Finding{metav1.ConditionTrue, v1alpha1.ReasonReady, message}, c.Generation}
}

// heldBack says whether an answer of Applied was the hub's: something newer than what
// is applied waits, or is refused. What an agent says with the same word is marked.
func heldBack(c *metav1.Condition) bool {
	return hubsWord(c.Reason) && c.Status == metav1.ConditionFalse && !strings.HasPrefix(c.Message, agentSays)
}

// hubsWord says whether a reason of Applied is one that the hub gives by itself.
func hubsWord(reason string) bool {
	switch reason {
	case v1alpha1.ReasonClusterNotReady, v1alpha1.ReasonManualSync, v1alpha1.ReasonWaitingForWave, v1alpha1.ReasonDependency,
		v1alpha1.ReasonSuspended, v1alpha1.ReasonForbidden, v1alpha1.ReasonRulesFailed, v1alpha1.ReasonHandOver:
		return true
	}
	return false
}
