// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strconv"
	"strings"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/deliver"
	"kumodo.io/convoy/pkg/tunnel"
)

// request is what the annotations ask for and nobody acted on yet, each by the value of
// its annotation: a sync, one by force, deletions that are confirmed, an action on a hook.
type request struct{ sync, force, confirm, hook string }

// any says whether the render is to be applied again.
func (q request) any() bool { return q.sync != "" || q.force != "" }

// pending says whether anything is asked for.
func (q request) pending() bool { return q != request{} }

func requested(release *v1alpha1.Release) request {
	status := &release.Status
	open := func(annotation, done string) string {
		if value := release.Annotations[annotation]; value != done {
			return value
		}
		return ""
	}
	return request{
		sync:    open(v1alpha1.AnnotationSyncRequestedAt, status.LastSyncRequest),
		force:   open(v1alpha1.AnnotationSyncForceRequestedAt, status.LastForceRequest),
		confirm: open(v1alpha1.AnnotationConfirmDeletions, status.LastConfirmation),
		hook:    open(v1alpha1.AnnotationHookRequested, status.LastHookRequest),
	}
}

// answer records which requests were acted on.
func (w *work) answer(q request) {
	w.outcome.SyncRequest, w.outcome.ForceRequest = q.sync, q.force
	w.outcome.Confirmation, w.outcome.HookRequest = q.confirm, q.hook
}

// once is what an order is to say that somebody asked for, beside a sync; nil: nothing.
// What does not fit the order of now, or the prune that is held, has come to nothing.
func (w *work) once(ordered tunnel.Order, now time.Time) *deliver.Once {
	var once deliver.Once
	if c, ok := readConfirmation(w.request.confirm); ok {
		held := w.release.Status.HeldPrune
		until := c.at.Add(confirmedFor)
		if held != nil && held.Sequence == ordered.Sequence && c.sequence == held.Sequence && c.digest == held.Digest && now.Before(until) && !c.at.After(now.Add(confirmedFor)) {
			once.Confirmed, once.ConfirmedUntil = c.digest, until.UTC()
		}
	}
	if action, ok := readAction(w.request.hook); ok {
		once.Actions = []tunnel.HookAction{action}
	}
	if once.Confirmed == "" && once.Actions == nil {
		return nil
	}
	return &once
}

// confirmation is the value of the annotation that confirms deletions.
type confirmation struct {
	sequence int64
	digest   string
	at       time.Time
}

func readConfirmation(value string) (confirmation, bool) {
	sequence, rest, ok := strings.Cut(value, "/")
	digest, at, ok2 := strings.Cut(rest, "/")
	if !ok || !ok2 || digest == "" {
		return confirmation{}, false
	}
	c := confirmation{digest: digest}
	var err, errAt error
	c.sequence, err = strconv.ParseInt(sequence, 10, 64)
	c.at, errAt = time.Parse(time.RFC3339Nano, at)
	return c, err == nil && errAt == nil
}

// readAction reads <action>/<time>/<run>/<hook>; the hook's name may hold slashes.
func readAction(value string) (tunnel.HookAction, bool) {
	parts := strings.SplitN(value, "/", 4)
	if len(parts) != 4 || parts[2] == "" || parts[3] == "" {
		return tunnel.HookAction{}, false
	}
	switch v1alpha1.HookAction(parts[0]) {
	case v1alpha1.HookRetry, v1alpha1.HookSkip, v1alpha1.HookAbort:
		return tunnel.HookAction{Hook: parts[3], Run: parts[2], Action: parts[0]}, true
	}
	return tunnel.HookAction{}, false
}

// carried is what the next order repeats of the one before, which the agent may not
// have seen: what is confirmed, as long as it is, and actions on runs of hooks of the
// same render. Neither is done twice: one names a list, the other a run.
func carried(ordered tunnel.Order, target wanted, now time.Time) deliver.Once {
	var once deliver.Once
	if ordered.Policy.Confirmed != "" && now.Before(ordered.Policy.ConfirmedUntil) {
		once.Confirmed, once.ConfirmedUntil = ordered.Policy.Confirmed, ordered.Policy.ConfirmedUntil
	}
	if ordered.Objects != nil && ordered.Objects.Digest == target.objects.Digest {
		once.Actions = ordered.Actions
	}
	return once
}

// merged is what was said before and what is said now.
func merged(before, now deliver.Once) deliver.Once {
	if now.Confirmed != "" {
		before.Confirmed, before.ConfirmedUntil = now.Confirmed, now.ConfirmedUntil
	}
	actions := append(before.Actions[:len(before.Actions):len(before.Actions)], now.Actions...)
	before.Actions = actions[max(len(actions)-maxActions, 0):]
	return before
}
