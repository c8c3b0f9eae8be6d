// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestALimitOfAttemptsHoldsWhenTheEngineIsKilled(t *testing.T) {
	inModes(t, testALimitOfAttemptsHoldsWhenTheEngineIsKilled)
}

func testALimitOfAttemptsHoldsWhenTheEngineIsKilled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("attempts")
	// The pauses are longer than the test: what is tried again is so after a restart.
	retry := func(o *tunnel.Order) { o.Policy.Retry = &tunnel.Retry{Limit: 1, MinSeconds: 600, MaxSeconds: 600} }
	refused := strings.Replace(configMap(ns, "main", "k", "v"), "\ndata:", "\nwrong:", 1)
	o := b.accept(b.order("attempts", ns, refused, retry))
	b.report(o.Release.UID, "failed once", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Settled && r.Applied.Reason == "DryRunFailed"
	})
	b.restart()
	gaveUp := func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Settled && r.Applied.Reason == "RetriesExhausted" &&
			strings.HasPrefix(r.Applied.Message, "gave up after 2 attempts, a sync starts again: DryRunFailed")
	}
	b.report(o.Release.UID, "given up", gaveUp)
	b.restart()
	writes := b.calls.writes.Load()
	r := b.report(o.Release.UID, "given up, after a restart too", gaveUp)
	if n := b.calls.writes.Load() - writes; n > 0 {
		t.Errorf("%d writes for an order that is given up", n)
	}
	if r.Operation == nil || r.Operation.Phase != "Failed" {
		t.Errorf("operation is %+v", r.Operation)
	}
	// A newer order has all its attempts.
	next := b.accept(b.order("attempts", ns, refused, retry))
	b.report(o.Release.UID, "failed once more", func(r tunnel.Report) bool {
		return r.Sequence == next.Sequence && r.Settled && r.Applied.Reason == "DryRunFailed"
	})
	b.apply("attempts", ns, configMap(ns, "main", "k", "v"), retry)
}
