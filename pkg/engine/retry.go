// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// attempts count how an order fares.
type attempts struct {
	// sequence of the order.
	sequence int64
	// failed is how often an operation for it failed. One of which it cannot be told
	// whether it did, since the cluster or the render was out of reach, is not counted;
	// nor is one that was cut off.
	failed int32
	// over: it failed as often as the order allows. finding is what it came to then.
	over    bool
	finding tunnel.Finding
}

// Attempts are what a record keeps of them, of an order that is not tried again for ever.
type Attempts struct {
	Sequence int64 `json:"sequence"`
	Failed   int32 `json:"failed"`
	// Last is what the last attempt came to, when there is none to follow, and Items of
	// how many objects.
	Last  *tunnel.Finding `json:"last,omitempty"`
	Items int             `json:"items,omitempty"`
}

// retryLimit is how often an order is tried again; negative: without a limit. A removal is
// always tried again.
func retryLimit(order tunnel.Order) int32 {
	if retry := order.Policy.Retry; retry != nil && order.Verb == tunnel.VerbApply {
		return retry.Limit
	}
	return -1
}

// countLocked counts an operation that came to a finding with an error. It is written
// down together with that, so that a restart allows no further attempts.
func (r *release) countLocked(order tunnel.Order, err error) {
	if isHeld(err) || isAborted(err) {
		return // for a person
	}
	if r.attempts.sequence != order.Sequence {
		r.attempts = attempts{sequence: order.Sequence}
	}
	if r.finding.Status == tunnel.False {
		r.attempts.failed++
	}
	limit := retryLimit(order)
	if limit > 0 && retriedByHand(order, err) {
		limit = 0
	}
	if r.attempts.over = limit >= 0 && r.attempts.failed > limit; r.attempts.over {
		r.attempts.finding = r.finding
	}
}

// attemptsLocked is what a record is to keep; nil: nothing.
func (r *release) attemptsLocked() *Attempts {
	a := r.attempts
	if a.sequence != r.order.Sequence || a.failed == 0 || retryLimit(r.order) < 0 {
		return nil
	}
	out := &Attempts{Sequence: a.sequence, Failed: a.failed}
	if a.over {
		out.Last, out.Items = &a.finding, r.total
	}
	return out
}

// restoreAttemptsLocked takes in what a record kept, and says whether its order is not
// tried any more.
func (r *release) restoreAttemptsLocked(kept *Attempts) bool {
	r.attempts = attempts{}
	if kept == nil || kept.Sequence != r.order.Sequence || retryLimit(r.order) < 0 {
		return false
	}
	r.attempts.sequence, r.attempts.failed = kept.Sequence, kept.Failed
	if kept.Last == nil {
		return false
	}
	r.attempts.over, r.attempts.finding = true, *kept.Last
	r.handled, r.settled, r.inventoryNew, r.total = kept.Sequence, true, true, kept.Items
	r.finding = *kept.Last
	r.giveUpLocked()
	return true
}

// againLocked says after which pause an operation that failed is tried again; false: as
// often as the order allows it was.
func (r *release) againLocked(order tunnel.Order, err error) (time.Duration, bool) {
	low, high := retryMin, retryMax
	if retry := order.Policy.Retry; retry != nil && order.Verb == tunnel.VerbApply {
		low = max(time.Duration(min(retry.MinSeconds, maxRetrySeconds))*time.Second, retryFloor)
		high = max(time.Duration(min(retry.MaxSeconds, maxRetrySeconds))*time.Second, low)
	}
	pause := backoff(r.retries, low, high)
	r.retries++
	if isHeld(err) {
		return retryMax, true // for a person, who sends a new order
	}
	return pause, r.attempts.sequence != order.Sequence || !r.attempts.over
}

// retriedByHand says whether an operation ended with a hook that its order runs once
// more because a person said so: that is for the one time.
func retriedByHand(order tunnel.Order, err error) bool {
	var stopped *hookError
	return errors.As(err, &stopped) && slices.ContainsFunc(order.Actions, func(action tunnel.HookAction) bool {
		return v1alpha1.HookAction(action.Action) == v1alpha1.HookRetry && action.Hook == stopped.name
	})
}

// giveUpLocked says that an order is not tried again. What it came to stays; a newer
// order, for which a sync request is enough, begins anew.
func (r *release) giveUpLocked() {
	tries := "1 attempt"
	if n := r.attempts.failed; n != 1 {
		tries = fmt.Sprintf("%d attempts", n)
	}
	message := fmt.Sprintf("gave up after %s, a sync starts again: %s: %s", tries, r.finding.Reason, r.finding.Message)
	r.finding.Reason, r.finding.Message = v1alpha1.ReasonRetriesEnded, clip(message, maxMessage)
	if r.op != nil {
		r.op.Message = r.finding.Message
	}
}
