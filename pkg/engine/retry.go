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
	// whether it did, since the cluster or the render was out of reach, is not counted.
	failed int32
}

// againLocked counts an operation that failed, and says after which pause it is tried
// again; false: as often as the order allows it was. A removal is always tried again.
func (r *release) againLocked(order tunnel.Order, err error) (time.Duration, bool) {
	low, high, limit := retryMin, retryMax, int32(-1)
	if retry := order.Policy.Retry; retry != nil && order.Verb == tunnel.VerbApply {
		low = max(time.Duration(min(retry.MinSeconds, maxRetrySeconds))*time.Second, retryFloor)
		high = max(time.Duration(min(retry.MaxSeconds, maxRetrySeconds))*time.Second, low)
		limit = retry.Limit
	}
	pause := backoff(r.retries, low, high)
	r.retries++
	if isHeld(err) {
		return retryMax, true // for a person, who sends a new order
	}
	if r.attempts.sequence != order.Sequence {
		r.attempts = attempts{sequence: order.Sequence}
	}
	if r.finding.Status == tunnel.False {
		r.attempts.failed++
	}
	if limit > 0 && retriedByHand(order, err) {
		limit = 0
	}
	return pause, limit < 0 || r.attempts.failed <= limit
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
