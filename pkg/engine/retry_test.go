// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestHowAnOperationThatFailedIsTriedAgain(t *testing.T) {
	failed := tunnel.Finding{Status: tunnel.False, Reason: "DryRunFailed", Message: "ConfigMap team/a: no"}
	unknown := tunnel.Finding{Status: tunnel.Unknown, Reason: "Unknown", Message: "connection refused"}
	held := errHeld
	for name, c := range map[string]struct {
		verb  tunnel.Verb
		retry *tunnel.Retry
		err   error
		found []tunnel.Finding
		// pauses until it was given up, or as many as there are findings.
		pauses  []time.Duration
		givenUp bool
	}{
		"without a policy it goes on": {found: []tunnel.Finding{failed, failed, failed}, pauses: []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second}},
		"with pauses of its own": {
			retry: &tunnel.Retry{Limit: -1, MinSeconds: 1, MaxSeconds: 3}, found: []tunnel.Finding{failed, failed, failed},
			pauses: []time.Duration{time.Second, 2 * time.Second, 3 * time.Second},
		},
		"a limit of two tries three times": {
			retry: &tunnel.Retry{Limit: 2, MinSeconds: 1, MaxSeconds: 60}, found: []tunnel.Finding{failed, failed, failed},
			pauses: []time.Duration{time.Second, 2 * time.Second}, givenUp: true,
		},
		"no retry tries once": {retry: &tunnel.Retry{MinSeconds: 1}, found: []tunnel.Finding{failed}, givenUp: true},
		"what cannot be told does not count": {
			retry: &tunnel.Retry{MinSeconds: 1, MaxSeconds: 2}, found: []tunnel.Finding{unknown, unknown, failed},
			pauses: []time.Duration{time.Second, 2 * time.Second}, givenUp: true,
		},
		"a removal is never given up": {
			verb: tunnel.VerbRemove, retry: &tunnel.Retry{MinSeconds: 1}, found: []tunnel.Finding{failed, failed}, pauses: []time.Duration{2 * time.Second, 4 * time.Second},
		},
		"deletions that are held wait for a person": {
			retry: &tunnel.Retry{MinSeconds: 1}, err: held, found: []tunnel.Finding{failed, failed}, pauses: []time.Duration{retryMax, retryMax},
		},
		"pauses that are none are at least a second": {
			retry: &tunnel.Retry{Limit: -1, MinSeconds: -5, MaxSeconds: -7}, found: []tunnel.Finding{failed, failed}, pauses: []time.Duration{time.Second, time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			order := tunnel.Order{Verb: tunnel.VerbApply, Sequence: 7, Policy: tunnel.Policy{Retry: c.retry}}
			if c.verb != "" {
				order.Verb = c.verb
			}
			err := c.err
			if err == nil {
				err = errors.New("it failed")
			}
			r := &release{}
			var pauses []time.Duration
			givenUp := false
			for _, finding := range c.found {
				r.finding = finding
				r.countLocked(order, err)
				pause, again := r.againLocked(order, err)
				if !again {
					givenUp = true
					r.giveUpLocked()
					break
				}
				pauses = append(pauses, pause)
			}
			if diff := cmp.Diff(c.pauses, pauses); diff != "" || givenUp != c.givenUp {
				t.Errorf("given up: %v, want %v; pauses (-want +got):\n%s", givenUp, c.givenUp, diff)
			}
			if givenUp && (r.finding.Reason != "RetriesExhausted" || !strings.Contains(r.finding.Message, "DryRunFailed: ConfigMap team/a: no")) {
				t.Errorf("finding %+v does not say why", r.finding)
			}
		})
	}
}

func TestANewerOrderStartsCountingAnew(t *testing.T) {
	retry := &tunnel.Retry{Limit: 1, MinSeconds: 1, MaxSeconds: 1}
	r := &release{finding: tunnel.Finding{Status: tunnel.False}}
	try := func(sequence int64) bool {
		order, err := tunnel.Order{Verb: tunnel.VerbApply, Sequence: sequence, Policy: tunnel.Policy{Retry: retry}}, errors.New("no")
		r.countLocked(order, err)
		_, again := r.againLocked(order, err)
		return again
	}
	if !try(1) || try(1) || !try(2) || try(2) {
		t.Error("each order has its own attempts")
	}
}

func TestAHookThatAPersonRetriesRunsOnceForThat(t *testing.T) {
	stopped := &hookError{phase: phasePreSync, name: "migrate"}
	try := func(limit int32, hook, action string) bool {
		r := &release{finding: tunnel.Finding{Status: tunnel.False}}
		order := tunnel.Order{
			Verb: tunnel.VerbApply, Sequence: 1, Policy: tunnel.Policy{Retry: &tunnel.Retry{Limit: limit, MinSeconds: 1, MaxSeconds: 1}},
			Actions: []tunnel.HookAction{{Hook: hook, Run: "0-1", Action: action}},
		}
		r.countLocked(order, stopped)
		_, again := r.againLocked(order, stopped)
		return again
	}
	if try(1, "migrate", "retry") {
		t.Error("it ran once more by itself")
	}
	if !try(-1, "migrate", "retry") || !try(1, "other", "retry") || !try(1, "migrate", "abort") {
		t.Error("another order is not tried again")
	}
}

func TestALimitOfAttemptsHoldsOverARestart(t *testing.T) {
	failed := tunnel.Finding{Status: tunnel.False, Reason: "DryRunFailed", Message: "ConfigMap team/a: no"}
	for name, c := range map[string]struct {
		limit, failures int32
		sequence        int64 // of the order after the restart
		over            bool
		left            int32 // attempts that it has then
	}{
		"none is left":                    {limit: 1, failures: 2, sequence: 7, over: true},
		"one try and no more":             {limit: 0, failures: 1, sequence: 7, over: true},
		"some are left":                   {limit: 3, failures: 2, sequence: 7, left: 2},
		"without a limit none is counted": {limit: -1, failures: 9, sequence: 7, left: 100},
		"a newer order has its own":       {limit: 1, failures: 2, sequence: 8, left: 2},
	} {
		t.Run(name, func(t *testing.T) {
			order := tunnel.Order{Verb: tunnel.VerbApply, Sequence: 7, Policy: tunnel.Policy{Retry: &tunnel.Retry{Limit: c.limit, MinSeconds: 1, MaxSeconds: 1}}}
			err := errors.New("it failed")
			r := &release{order: order, finding: failed, total: 3}
			for range c.failures {
				r.countLocked(order, err)
			}
			kept := r.attemptsLocked()
			if kept == nil != (c.limit < 0) {
				t.Fatalf("kept is %+v", kept)
			}
			order.Sequence = c.sequence
			again := &release{order: order}
			over := again.restoreAttemptsLocked(kept)
			if over != c.over {
				t.Fatalf("over: %v, want %v", over, c.over)
			}
			if over {
				if again.handled != 7 || !again.settled || again.total != 3 || again.finding.Reason != "RetriesExhausted" ||
					!strings.Contains(again.finding.Message, "DryRunFailed: ConfigMap team/a: no") {
					t.Errorf("restored are %d, %v, %d, %+v", again.handled, again.settled, again.total, again.finding)
				}
				return
			}
			again.finding = failed
			var left int32
			for left < 100 {
				left++
				again.countLocked(order, err)
				if _, more := again.againLocked(order, err); !more {
					break
				}
			}
			if left != c.left {
				t.Errorf("%d attempts are left, want %d", left, c.left)
			}
		})
	}
}
