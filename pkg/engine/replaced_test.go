// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

var errNotOrdered = errors.New("403 NotOrdered: no order of this Cluster names that digest")

// refusing is a hub that gives out no layer.
type refusing struct{ asked func() }

func (f refusing) Open(context.Context, tunnel.Layer, bool, string) (io.ReadCloser, error) {
	f.asked()
	return nil, errNotOrdered
}

// starting is a Release with an order of a render that is to be fetched, and what it has
// reported.
func starting(t *testing.T, asked func(r *release)) (*release, *[]tunnel.Report) {
	t.Helper()
	rn, reports := unstarted(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	r := rn.newRelease("r")
	rn.blobs = refusing{func() { asked(r) }}
	r.order = applyOrder(7, digestOfText("render"))
	return r, reports
}

func failures(r *release) int { return testutil.CollectAndCount(r.runner.meter.operations) }

func TestALayerOfAnOrderThatWasReplacedMeanwhileIsNoFailure(t *testing.T) {
	t.Parallel()
	r, reports := starting(t, func(r *release) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.order = applyOrder(8, digestOfText("the next"))
	})
	r.carryOut(t.Context())
	if len(*reports) > 0 {
		t.Errorf("told: %+v", *reports)
	}
	if r.retries != 0 || !r.retryAt.IsZero() || failures(r) != 0 {
		t.Errorf("it is counted as a failure: %d retries, next at %s, %d operations", r.retries, r.retryAt, failures(r))
	}
	if r.handled == 8 {
		t.Error("the next order is taken for carried out")
	}
}

func TestALayerThatIsNotToBeHadIsOneWhileItsOrderHolds(t *testing.T) {
	t.Parallel()
	r, reports := starting(t, func(*release) {})
	r.carryOut(t.Context())
	if len(*reports) != 1 || !strings.Contains((*reports)[0].Applied.Message, "NotOrdered") {
		t.Errorf("told: %+v", *reports)
	}
	if r.retryAt.IsZero() || failures(r) != 1 {
		t.Errorf("next at %s, %d operations", r.retryAt, failures(r))
	}
}

func TestRulesThatAreNotToBeHadMakeHealthUnknownAndNotWhatIsApplied(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		applied string // digest of the render applied in full
		want    tunnel.Truth
		reason  string
	}{
		"the render is applied in full": {digestOfText("render"), tunnel.True, v1alpha1.ReasonApplied},
		"another is":                    {digestOfText("before"), tunnel.Unknown, v1alpha1.ReasonProgressing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, reports := starting(t, func(*release) {})
			r.order.Rules = &tunnel.Layer{Digest: digestOfText("rules"), Size: 5}
			r.applied = &Render{Objects: tunnel.Layer{Digest: c.applied}}
			r.carryOut(t.Context())
			if len(*reports) != 1 {
				t.Fatalf("told: %+v", *reports)
			}
			told := (*reports)[0]
			if told.Applied.Status != c.want || told.Applied.Reason != c.reason {
				t.Errorf("Applied: %+v", told.Applied)
			}
			if told.Healthy.Status != tunnel.Unknown || !strings.Contains(told.Healthy.Message, "health rules") || !strings.Contains(told.Healthy.Message, "NotOrdered") {
				t.Errorf("Healthy: %+v", told.Healthy)
			}
			if r.retryAt.IsZero() {
				t.Error("the rules are not asked for again")
			}
			if told.Operation.Phase != v1alpha1.PhaseFailed {
				t.Errorf("operation %+v", told.Operation)
			}
			// An order that names none is judged without.
			r.order.Rules = nil
			if err := r.stageRules(t.Context(), r.order); err != nil {
				t.Fatal(err)
			}
			if r.mu.Lock(); r.unruled != "" {
				t.Errorf("still said: %s", r.unruled)
			}
			r.mu.Unlock()
		})
	}
}

func TestAnOperationThatAPersonAbortedIsToldAsAborted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ state, phase string }{
		"a hook that was aborted": {runAborted, v1alpha1.PhaseAborted},
		"a hook that failed":      {runFailed, v1alpha1.PhaseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, p := hooking(t)
			r.order = applyOrder(7, "sha256:01")
			r.begin(v1alpha1.OperationSync, r.order)
			run := &HookRun{Identity: p.hooks[0].id, Hook: "migrate", Phase: phasePreSync, State: c.state, Message: "aborted: its Job runs"}
			err := r.failSync(t.Context(), r.order, newHookError(run), v1alpha1.ReasonUnknown)
			if r.op.Phase != c.phase || r.finding.Status != tunnel.False || r.finding.Reason != v1alpha1.ReasonHookFailed || !isAborted(err) == (c.state == runAborted) {
				t.Errorf("operation %+v, finding %+v, error %v", r.op, r.finding, err)
			}
		})
	}
}
