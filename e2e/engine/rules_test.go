// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/pkg/engine"
	"kumodo.io/convoy/pkg/health"
	"kumodo.io/convoy/pkg/tunnel"
)

// TestNewRulesWriteNothing: an order that differs by its rules alone judges what is there
// anew, and changes no object: the API server's audit log is the witness.
func TestNewRulesWriteNothing(t *testing.T) { inModes(t, testNewRulesWriteNothing) }

func testNewRulesWriteNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serveWidgets()
	ns := b.namespace("rejudged")
	documents := widget("one") + widget("two") + configMap(ns, "cm", "k", "v")
	b.apply("rejudged", ns, documents)
	before, n := time.Now(), int64(len(b.calls.since(0)))
	o := b.accept(b.order("rejudged", ns, documents, b.rules(phased)))
	b.healthy(o, tunnel.False, "Progressing", "phase is not there")
	b.applied(b.accept(b.order("rejudged", ns, documents, b.rules(health.Rule{Set: "apps/all", Group: "health.example.test", Kind: "Widget", Healthy: "true"}))))
	var reads int
	for _, call := range b.calls.since(n) {
		switch {
		case strings.HasPrefix(call, http.MethodGet) && strings.Contains(call, "/widgets/"):
			reads++
		case strings.Contains(call, "/namespaces/"+ns):
			t.Errorf("%s was asked", call)
		}
	}
	if reads != 4 {
		t.Errorf("widgets were read %d times, want each once for each order", reads)
	}
	for event, err := range harness.Audit(b.plane.AuditLog(), harness.Since(before), harness.WithVerb("create", "update", "patch", "delete", "deletecollection")) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Object.Namespace == ns {
			t.Errorf("%s of %s %s by %s", event.Verb, event.Object.Resource, event.Object.Name, event.UserAgent)
		}
	}
}

// TestOtherRulesLeaveWhatIsAppliedApplied: whatever they find of the first wave, the second
// stays applied, and so does the Release.
func TestOtherRulesLeaveWhatIsAppliedApplied(t *testing.T) {
	inModes(t, testOtherRulesLeaveWhatIsAppliedApplied)
}

func testOtherRulesLeaveWhatIsAppliedApplied(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serveWidgets()
	ns := b.namespace("leftapplied")
	documents := widget("one") + strings.Replace(configMap(ns, "late", "k", "v"), "metadata: {", `metadata: {annotations: {convoy.kumodo.io/sync-wave: "1"}, `, 1)
	b.apply("leftapplied", ns, documents)
	kind := func(rule health.Rule) option {
		rule.Set, rule.Group, rule.Kind = "apps/x", "health.example.test", "Widget"
		return b.rules(rule)
	}
	brief := func(o *tunnel.Order) { o.Policy.TimeoutSeconds = 1 }
	cases := []struct {
		name    string
		options []option
		status  tunnel.Truth
		reason  string
	}{
		{"a rule that fails", []option{kind(health.Rule{Healthy: "object.status.phase == 'Up'"})}, tunnel.Unknown, "Unknown"},
		{"a rule that waits", []option{kind(health.Rule{Healthy: "false"})}, tunnel.False, "Progressing"},
		{"a rule that says Degraded", []option{kind(health.Rule{Degraded: "true"})}, tunnel.False, "Degraded"},
		{"other terms under that rule", []option{kind(health.Rule{Degraded: "true"}), func(o *tunnel.Order) { o.Policy.Automatic = false }}, tunnel.False, "Degraded"},
		{"no rules any more", nil, tunnel.True, "Healthy"},
	}
	for _, c := range cases {
		o := b.accept(b.order("leftapplied", ns, documents, append(c.options, brief)...))
		bad := ""
		r := b.report(o.Release.UID, c.name+": the end of its operation", func(r tunnel.Report) bool {
			if r.Sequence != o.Sequence {
				return false
			}
			if r.Applied.Status != tunnel.True || r.InSync.Status != tunnel.True {
				bad = fmt.Sprintf("applied %+v, in sync %+v", r.Applied, r.InSync)
			}
			return r.Settled && r.Operation != nil && r.Operation.Sequence == o.Sequence && r.Operation.FinishedAt != nil
		})
		if bad != "" {
			t.Errorf("%s: %s", c.name, bad)
		}
		if r.Healthy.Status != c.status || r.Healthy.Reason != c.reason {
			t.Errorf("%s: healthy is %+v", c.name, r.Healthy)
		}
	}
}

// TestRulesAreExchangedWhileADeletionWaits: what was said by the old ones is said no more.
func TestRulesAreExchangedWhileADeletionWaits(t *testing.T) {
	inModes(t, testRulesAreExchangedWhileADeletionWaits)
}

func testRulesAreExchangedWhileADeletionWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serveWidgets()
	ns := b.namespace("exchanged")
	stuck := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stuck, finalizers: [exchanged.example.test/hold]}\n---\n"
	b.apply("exchanged", ns, widget("one")+stuck)
	ruled := b.rules(health.Rule{Set: "apps/x", Group: "health.example.test", Kind: "Widget", Suspended: "true", Message: "'by a set that goes'"})
	o := b.accept(b.order("exchanged", ns, widget("one")+stuck, ruled))
	b.healthy(o, tunnel.Unknown, "Suspended", "by a set that goes")
	says := func(r tunnel.Report, reason string) bool {
		return slices.ContainsFunc(r.Exceptions, func(e tunnel.Exception) bool { return e.Reason == reason })
	}
	o = b.accept(b.order("exchanged", ns, widget("one"), ruled))
	b.report(o.Release.UID, "that a deletion waits, judged by the set", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && says(r, "Terminating") && says(r, "Suspended")
	})
	o = b.accept(b.order("exchanged", ns, widget("one")))
	r := b.report(o.Release.UID, "that a deletion waits, judged by no set", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && says(r, "Terminating") && !says(r, "Suspended")
	})
	if r.Applied.Status == tunnel.True {
		t.Errorf("applied is %+v while the deletion waits", r.Applied)
	}
	b.edit(configmaps, ns, "stuck", "owner", `{"metadata":{"finalizers":null}}`)
	b.applied(o)
}

// TestRulesThatCannotBeHadHoldTheirOrderBack: what runs stays judged and enforced as it is.
func TestRulesThatCannotBeHadHoldTheirOrderBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("lostrules")
	b.apply("lostrules", ns, configMap(ns, "cm", "k", "old"))
	b.blobs.setAway(true)
	o := b.accept(b.order("lostrules", ns, configMap(ns, "cm", "k", "new"), b.rules(health.Rule{Set: "all", Kind: "ConfigMap", Degraded: `object.data.k == "new"`, Message: `"it is new"`})))
	b.report(o.Release.UID, "that a layer is not there", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Applied.Status == tunnel.Unknown && strings.Contains(r.Applied.Message, "away")
	})
	if got := data(b.get(configmaps, ns, "cm"), "k"); got != "old" {
		t.Errorf("k is %s", got)
	}
	b.blobs.setAway(false)
	b.report(o.Release.UID, "degraded by the rule", func(r tunnel.Report) bool {
		return r.Applied.Status == tunnel.True && r.Healthy.Reason == "Degraded" && strings.Contains(r.Healthy.Message, "it is new")
	})
	if got := data(b.get(configmaps, ns, "cm"), "k"); got != "new" {
		t.Errorf("k is %s", got)
	}
}

// TestASuspendedReleaseIsJudgedByNewRules: to judge is not to apply.
func TestASuspendedReleaseIsJudgedByNewRules(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("heldstill")
	b.apply("heldstill", ns, configMap(ns, "cm", "k", "v"))
	before := b.get(configmaps, ns, "cm").GetResourceVersion()
	rule := health.Rule{Set: "all", Kind: "ConfigMap", Degraded: `object.data.k == "v"`, Message: `"k is v"`}
	o := b.accept(b.order("heldstill", ns, configMap(ns, "cm", "k", "v"), b.rules(rule), func(o *tunnel.Order) { o.Policy.Suspended = true }))
	b.healthy(o, tunnel.False, "Degraded", "k is v")
	if after := b.get(configmaps, ns, "cm").GetResourceVersion(); after != before {
		t.Error("the object was changed")
	}
}

// TestRulesThatNoOrderNamesAreNotKept, and are given back to a hub that lost them while one
// does.
func TestRulesThatNoOrderNamesAreNotKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("tidied")
	o, _ := b.apply("tidied", ns, configMap(ns, "cm", "k", "v"), b.rules(health.Rule{Set: "all", Kind: "ConfigMap", Healthy: "true"}))
	from, size, err := b.runner.Layer(b.ctx, o.Rules.Digest)
	if err != nil || size != o.Rules.Size {
		t.Fatalf("the layer is not given back: %d bytes, %v", size, err)
	}
	var got bytes.Buffer
	if _, err := got.ReadFrom(from); err != nil || int64(got.Len()) != size {
		t.Errorf("%d bytes came back, %v", got.Len(), err)
	}
	if err := from.Close(); err != nil {
		t.Error(err)
	}
	b.apply("tidied", ns, configMap(ns, "cm", "k", "v"))
	err = wait.PollUntilContextTimeout(b.ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		kept, err := b.state.OpenRender(ctx, o.Rules.Digest)
		if errors.Is(err, engine.ErrNotStored) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		return false, kept.Close()
	})
	if err != nil {
		t.Errorf("the layer is still kept: %v", err)
	}
}
