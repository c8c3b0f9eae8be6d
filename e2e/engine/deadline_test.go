// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestASyncWhoseObjectsAreNotHealthyAtItsDeadlineHasFailedAndIsApplied(t *testing.T) {
	inModes(t, testASyncWhoseObjectsAreNotHealthyAtItsDeadlineHasFailedAndIsApplied)
}

func testASyncWhoseObjectsAreNotHealthyAtItsDeadlineHasFailedAndIsApplied(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("sync-deadline")
	o := b.accept(b.order("sync-deadline", ns, configMap(ns, "main", "k", "v")+stuck, seconds(2)))
	r := b.report(o.Release.UID, "failed at its deadline", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Settled && r.Operation != nil && r.Operation.Phase == "Failed"
	})
	if r.Applied.Status != tunnel.True || r.Healthy.Status == tunnel.True || r.AppliedRef != o.Objects.Digest {
		t.Errorf("applied is %+v, healthy %+v", r.Applied, r.Healthy)
	}
	if !strings.HasPrefix(r.Operation.Message, "after 2s still waiting for apps/Deployment "+ns+"/stuck") || r.Operation.FinishedAt == nil || r.Operation.Deadline != nil {
		t.Errorf("operation is %+v", r.Operation)
	}
}

func TestARemovalThatAFinalizerHoldsBeyondItsDeadlineSaysSoAndFollowsTheLift(t *testing.T) {
	inModes(t, testARemovalThatAFinalizerHoldsBeyondItsDeadlineSaysSoAndFollowsTheLift)
}

func testARemovalThatAFinalizerHoldsBeyondItsDeadlineSaysSoAndFollowsTheLift(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("removal-deadline")
	held := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, annotations: {convoy.kumodo.io/sync-wave: \"1\"}, finalizers: [removal.example.test/hold]}\n---\n"
	b.apply("removal-deadline", ns, configMap(ns, "below", "k", "v")+held)
	o := b.accept(b.bare("removal-deadline", tunnel.VerbRemove, seconds(2)))
	r := b.report(o.Release.UID, "held beyond its deadline", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Settled && r.Applied.Reason == "PruneFailed"
	})
	if r.Done || r.Applied.Status != tunnel.False || !strings.Contains(r.Applied.Message, "ConfigMap "+ns+"/held") ||
		!strings.Contains(r.Applied.Message, "removal.example.test/hold") || r.Operation == nil || r.Operation.Phase != "Failed" {
		t.Errorf("applied is %+v, operation %+v", r.Applied, r.Operation)
	}
	b.get(configmaps, ns, "below")
	b.edit(configmaps, ns, "held", "owner", `{"metadata":{"finalizers":null}}`)
	b.report(o.Release.UID, "removed", func(r tunnel.Report) bool { return r.Done })
	b.gone(configmaps, ns, "below")
}
