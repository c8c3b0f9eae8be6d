// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// Outcome is what the Release controller came to, as one status write.
type Outcome struct {
	// Generation that was looked at.
	Generation int64
	// Rendered is what became of the render; nil: not looked at this time.
	Rendered *Finding
	// Render replaces the current one; nil: it stays.
	Render *Render
	// Waiting says why something newer than what is applied is held back; nil:
	// nothing is.
	Waiting *Finding
	// Order makes the next order, given the last sequence; nil: the current order
	// stays. It is called again when the write has to be tried again.
	Order func(last int64) (v1alpha1.OrderStatus, error)
	// SyncRequest and ForceRequest are the annotation values that were acted on.
	SyncRequest, ForceRequest string
	// Confirmation and HookRequest, too: of deletions that are held, and of an action on
	// a hook.
	Confirmation, HookRequest string
	// GoOn: an order that was adopted is no longer held on to.
	GoOn bool
	// Deleting is what a deletion waits for; nil: the Release is not deleted, or
	// waits for nothing yet.
	Deleting *Finding
}

// Render is a render as stored, with what it was made of.
type Render struct {
	SourceRevision string
	InputsHash     string
	Status         v1alpha1.RenderStatus
}

// foldOutcome brings an outcome into the status. newest is the report held in
// memory, or nil; last is the sequence of the last order of a Release that is deleted.
func foldOutcome(release *v1alpha1.Release, outcome Outcome, newest *tunnel.Report, last int64, now time.Time) error {
	status := &release.Status
	o := start(release, last, now)
	if newest != nil {
		// What the conditions say of a report stands beside what it counts. It is about the
		// order of before.
		foldFacts(status, newest, now)
	}
	o.Generation = outcome.Generation
	o.Rendered, o.Waiting = outcome.Rendered, outcome.Waiting
	if outcome.Deleting != nil {
		o.Deleting = outcome.Deleting
	}
	o.Report = newest
	if outcome.Render != nil {
		render := outcome.Render.Status
		status.Render = &render
		status.RenderRef = render.Objects.Digest
		status.SourceRevision = outcome.Render.SourceRevision
		status.InputsHash = outcome.Render.InputsHash
	}
	if outcome.GoOn && status.Adopted != nil {
		status.Adopted = nil
		if outcome.Render == nil {
			// The hash is not of the render that was adopted: it is made as soon as it can be.
			status.InputsHash = ""
		}
	}
	if outcome.Order != nil {
		order, err := outcome.Order(status.Sequence)
		if err != nil {
			return err
		}
		status.Order, status.Sequence = &order, order.Sequence
		status.HeldDeletion = nil // it named the order before
		status.HeldPrune = nil    // as this does
	}
	if outcome.SyncRequest != "" {
		status.LastSyncRequest = outcome.SyncRequest
	}
	if outcome.ForceRequest != "" {
		status.LastForceRequest = outcome.ForceRequest
	}
	if outcome.Confirmation != "" {
		status.LastConfirmation = outcome.Confirmation
	}
	if outcome.HookRequest != "" {
		status.LastHookRequest = outcome.HookRequest
	}
	if releaseHeldOver(release, now) {
		status.HeldDeletion = nil
	}
	status.ObservedGeneration = outcome.Generation
	o.Ordered, o.Adopted = max(o.Ordered, status.Sequence), adoptedBy(status)
	o.AppliedInFull = status.AppliedRef != "" && status.AppliedRef == orderOf(status).digest()
	status.Conditions = conditions(o)
	return nil
}

// foldReport brings an agent's report into the status.
func foldReport(release *v1alpha1.Release, report *tunnel.Report, last int64, now time.Time) {
	status := &release.Status
	o := start(release, last, now)
	o.Report = report
	o.Waiting = heldBackBefore(status)
	o.AppliedInFull = foldFacts(status, report, now)
	if release.DeletionTimestamp != nil {
		o.Deleting = &Finding{metav1.ConditionFalse, v1alpha1.ReasonDeleting, removal(report)}
	}
	status.Conditions = conditions(o)
}

// foldFacts takes over all that a report says beside the conditions. It says whether the
// digest that is ordered is the one last applied in full.
func foldFacts(status *v1alpha1.ReleaseStatus, report *tunnel.Report, now time.Time) bool {
	order := orderOf(status)
	if report.Sequence > 0 && report.AppliedRef != "" {
		status.AppliedRef = clip(report.AppliedRef, maxName)
	}
	inFull := status.AppliedRef != "" && status.AppliedRef == order.digest()
	status.Objects = v1alpha1.ObjectCounts(report.Counts)
	status.Exceptions, status.MoreExceptions = exceptions(report)
	if runs := hookRuns(report.Hooks); runs != nil {
		status.Hooks = runs
	}
	if report.Sequence == status.Sequence {
		status.HeldPrune = heldPrune(report.Held)
	}
	if operation := operation(report.Operation); operation != nil && !repeats(status.LastOperation, operation) {
		status.LastOperation = operation
	}
	if report.Sequence == status.Sequence && report.Applied.Status == tunnel.True && inFull {
		status.History = history(status.History, status.Render, order, report, now)
	}
	return inFull
}

// withoutFacts is a status with what foldFacts takes over as it was in old.
func withoutFacts(status, old *v1alpha1.ReleaseStatus) *v1alpha1.ReleaseStatus {
	out := *status
	out.AppliedRef, out.Objects, out.Exceptions, out.MoreExceptions = old.AppliedRef, old.Objects, old.Exceptions, old.MoreExceptions
	out.Hooks, out.HeldPrune, out.LastOperation, out.History = old.Hooks, old.HeldPrune, old.LastOperation, old.History
	return &out
}

// foldSilence gives Unknown to what only the agent can know.
func foldSilence(release *v1alpha1.Release, silence Silence, last int64, now time.Time) {
	status := &release.Status
	o := start(release, last, now)
	o.Waiting = heldBackBefore(status)
	o.AppliedInFull = status.AppliedRef != "" && status.AppliedRef == orderOf(status).digest()
	if status.LastReportedAt != nil {
		silence.LastReport = status.LastReportedAt.Time
	}
	o.Silent = &silence
	status.Conditions = conditions(o)
}

// start fills in what is known from the stored status alone. The last order of a Release
// that is deleted is the hub's own, though no status records it: an agent that holds it
// is not ahead of the hub.
func start(release *v1alpha1.Release, last int64, now time.Time) observed {
	status := &release.Status
	ordered := status.Sequence
	if release.DeletionTimestamp != nil {
		ordered = max(ordered, last)
	}
	return observed{
		At:                 metav1.NewTime(now.Truncate(time.Second)),
		Generation:         status.ObservedGeneration,
		PreviousGeneration: status.ObservedGeneration,
		Previous:           status.Conditions,
		Ordered:            ordered,
		PreviousOrdered:    ordered,
		Deleting:           deletingOf(release),
		Adopted:            adoptedBy(status),
	}
}

func adoptedBy(status *v1alpha1.ReleaseStatus) int64 {
	if status.Adopted == nil {
		return 0
	}
	return status.Adopted.Sequence
}

// heldBackBefore is what the controller last said about something newer: only
// the controller says otherwise.
func heldBackBefore(status *v1alpha1.ReleaseStatus) *Finding {
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if c.Type == v1alpha1.ConditionApplied && heldBack(c) {
			return &Finding{c.Status, c.Reason, c.Message}
		}
	}
	return nil
}

// ordered is what is needed of the current order's payload.
type ordered tunnel.Order

// orderOf decodes the current order. A payload that is no order gives none: the
// agent will refuse it, since whoever wrote it could not sign it.
func orderOf(status *v1alpha1.ReleaseStatus) ordered {
	var order ordered
	if status.Order == nil {
		return order
	}
	if err := json.Unmarshal([]byte(status.Order.Payload), &order); err != nil {
		return ordered{}
	}
	return order
}

func (o ordered) digest() string {
	if o.Objects == nil {
		return ""
	}
	return o.Objects.Digest
}

func removal(report *tunnel.Report) string {
	switch {
	case report.Applied.Status == tunnel.False && report.Applied.Message != "":
		return clip("the agent carries out the last order: "+report.Applied.Message, maxMessage)
	case report.Operation != nil && report.Operation.Message != "":
		return clip("the agent carries out the last order: "+report.Operation.Message, maxMessage)
	}
	return "the agent carries out the last order"
}

func exceptions(report *tunnel.Report) ([]v1alpha1.ObjectException, int32) {
	list, more := report.Exceptions, max(report.More, 0)
	if len(list) > maxExceptions {
		more += int32(len(list) - maxExceptions) // bounded by the body limit of a report
		list = list[:maxExceptions]
	}
	if len(list) == 0 {
		return nil, more
	}
	out := make([]v1alpha1.ObjectException, len(list))
	for i, e := range list {
		out[i] = v1alpha1.ObjectException{
			Group: clip(e.Group, maxName), Kind: clip(e.Kind, maxName), Namespace: clip(e.Namespace, maxName), Name: clip(e.Name, maxName),
			Reason: cleanReason(e.Reason), Message: clip(e.Message, maxExceptionText),
		}
		if !e.Since.IsZero() {
			since := metav1.NewTime(e.Since.Truncate(time.Second))
			out[i].Since = &since
		}
	}
	return out, more
}

func operation(in *tunnel.Operation) *v1alpha1.Operation {
	if in == nil {
		return nil
	}
	return &v1alpha1.Operation{
		Type: cleanReason(in.Type), Phase: cleanReason(in.Phase), Sequence: in.Sequence, Message: clip(in.Message, maxMessage),
		StartedAt: wholeSeconds(&in.StartedAt), FinishedAt: wholeSeconds(in.FinishedAt), Deadline: wholeSeconds(in.Deadline),
	}
}

func wholeSeconds(t *time.Time) *metav1.Time {
	if t == nil || t.IsZero() {
		return nil
	}
	out := metav1.NewTime(t.Truncate(time.Second))
	return &out
}

// repeats says that an operation is the same again, soon after: a retry loop is
// not worth a write each time.
func repeats(old, next *v1alpha1.Operation) bool {
	if old == nil || old.Type != next.Type || old.Phase != next.Phase || old.Sequence != next.Sequence || old.Message != next.Message {
		return false
	}
	if old.FinishedAt == nil || next.FinishedAt == nil {
		return old.FinishedAt == nil && next.FinishedAt == nil && old.StartedAt.Equal(next.StartedAt)
	}
	return next.FinishedAt.Sub(old.FinishedAt.Time).Abs() < operationRepeat
}

// history puts the render that was applied in front, once.
func history(list []v1alpha1.HistoryEntry, render *v1alpha1.RenderStatus, order ordered, report *tunnel.Report, now time.Time) []v1alpha1.HistoryEntry {
	healthy := report.Healthy.Status == tunnel.True
	if len(list) > 0 && list[0].RenderRef == report.AppliedRef {
		if healthy && !list[0].Healthy {
			list = append([]v1alpha1.HistoryEntry(nil), list...)
			list[0].Healthy = true
		}
		return list
	}
	at := metav1.NewTime(now.Truncate(time.Second))
	entry := v1alpha1.HistoryEntry{
		RenderRef: report.AppliedRef, SourceRevision: order.Revision, Sequence: report.Sequence, AppliedAt: &at, Healthy: healthy,
	}
	if order.Sealed != nil {
		entry.Sealed = v1alpha1.LayerReference{Digest: order.Sealed.Digest, Size: order.Sealed.Size}
	}
	if render != nil && render.Objects.Digest == report.AppliedRef {
		entry.TargetNamespace, entry.Provenance = render.TargetNamespace, render.Provenance
	}
	out := append([]v1alpha1.HistoryEntry{entry}, list...)
	return out[:min(len(out), maxHistory)]
}

// sameStatus says whether a write would change nothing that is worth one.
func sameStatus(old, next *v1alpha1.ReleaseStatus) bool {
	return equality.Semantic.DeepEqual(old, next)
}

// sameConditions compares all but transition times.
func sameConditions(old, next []metav1.Condition) bool {
	if len(old) != len(next) {
		return false
	}
	for i := range next {
		a, b := old[i], next[i]
		a.LastTransitionTime, b.LastTransitionTime = metav1.Time{}, metav1.Time{}
		if a != b {
			return false
		}
	}
	return true
}
