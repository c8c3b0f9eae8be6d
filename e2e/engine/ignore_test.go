// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// ignoring orders what is left to others.
func ignoring(rules ...tunnel.Ignore) option {
	return func(o *tunnel.Order) {
		o.Ignore, o.Requires = rules, []string{tunnel.FeatureIgnore}
	}
}

func TestAFieldThatIsLeftToOthersIsNeitherComparedNorChanged(t *testing.T) {
	inModes(t, testAFieldThatIsLeftToOthersIsNeitherComparedNorChanged)
}

func testAFieldThatIsLeftToOthersIsNeitherComparedNorChanged(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		rule tunnel.Ignore
	}{
		{"by pointer", tunnel.Ignore{Kind: "ConfigMap", Pointers: []string{"/data/theirs"}}},
		{"by name", tunnel.Ignore{Name: "one", Pointers: []string{"/data/theirs"}}},
		{"by manager", tunnel.Ignore{Managers: []string{"somebody"}}},
		{"by condition", tunnel.Ignore{When: "object.metadata.name == 'one'", Pointers: []string{"/data/theirs"}}},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			ns := b.namespace(fmt.Sprintf("ignore-%d", i))
			release := fmt.Sprintf("ignore-%d", i)
			b.apply(release, ns, configMap(ns, "one", "ours", "1", "theirs", "first"), ignoring(test.rule))
			if got := b.get(configmaps, ns, "one"); data(got, "theirs") != "first" {
				t.Errorf("when the object was made the field was not applied: %v", got.Object["data"])
			}
			b.edit(configmaps, ns, "one", "somebody", `{"data":{"theirs":"edited"}}`)
			b.settle()
			b.report("uid-"+release, "in sync", func(r tunnel.Report) bool { return r.Settled && r.InSync.Status == tunnel.True })
			from := b.calls.n.Load()
			b.apply(release, ns, configMap(ns, "one", "ours", "2", "theirs", "second"), ignoring(test.rule))
			got := b.get(configmaps, ns, "one")
			if data(got, "ours") != "2" || data(got, "theirs") != "edited" {
				t.Errorf("after the next render: %v; calls %v", got.Object["data"], b.calls.since(from))
			}
			b.edit(configmaps, ns, "one", "somebody", `{"data":{"ours":"edited","theirs":"again"}}`)
			if test.rule.Managers == nil {
				got = b.live(configmaps, ns, "one", "repaired but for what is theirs", func(u *unstructured.Unstructured) bool { return data(u, "ours") == "2" })
				if data(got, "theirs") != "again" {
					t.Errorf("after the repair: %v", got.Object["data"])
				}
			}
			b.apply(release, ns, configMap(ns, "one", "ours", "3"), ignoring(test.rule))
			if got = b.get(configmaps, ns, "one"); data(got, "theirs") != "again" {
				t.Errorf("after the field had left the render: %v", got.Object["data"])
			}
			if test.rule.Managers != nil {
				return
			}
			b.apply(release, ns, configMap(ns, "one", "ours", "3", "theirs", "third"), func(o *tunnel.Order) { o.Policy.ForceConflicts = true })
			if got = b.get(configmaps, ns, "one"); data(got, "theirs") != "third" {
				t.Errorf("without the rule: %v", got.Object["data"])
			}
		})
	}
}

func TestAFieldThatOnlyWeOwnNeverVanishesWhenItIsLeftToOthers(t *testing.T) {
	inModes(t, testAFieldThatOnlyWeOwnNeverVanishesWhenItIsLeftToOthers)
}

func testAFieldThatOnlyWeOwnNeverVanishesWhenItIsLeftToOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("ignore-own")
	b.apply("ignore-own", ns, configMap(ns, "one", "ours", "1", "left", "kept"))
	rule := ignoring(tunnel.Ignore{Pointers: []string{"/data/left"}})
	for i, documents := range []string{
		configMap(ns, "one", "ours", "1", "left", "kept"),  // the rule alone
		configMap(ns, "one", "ours", "2", "left", "other"), // another value
		configMap(ns, "one", "ours", "3"),                  // none any more
		configMap(ns, "one", "ours", "3"),
	} {
		b.apply("ignore-own", ns, documents, rule)
		if got := b.get(configmaps, ns, "one"); data(got, "left") != "kept" {
			t.Fatalf("after render %d the data are %v", i, got.Object["data"])
		}
	}
	b.restart()
	b.report("uid-ignore-own", "in sync after a restart", func(r tunnel.Report) bool { return r.Settled && r.InSync.Status == tunnel.True })
	b.quiet("after a restart")
	b.edit(configmaps, ns, "one", "somebody", `{"data":{"left":"theirs now"}}`)
	b.apply("ignore-own", ns, configMap(ns, "one", "ours", "4"), rule)
	got := b.get(configmaps, ns, "one")
	if data(got, "left") != "theirs now" {
		t.Errorf("the data are %v", got.Object["data"])
	}
	for _, e := range got.GetManagedFields() {
		if e.Manager == "convoy" && strings.Contains(e.FieldsV1.String(), "f:left") {
			t.Error("the field is still ours")
		}
	}
}

func TestAnObjectThatIsLeftAltogetherIsMadeAndMadeAgainButNotChanged(t *testing.T) {
	inModes(t, testAnObjectThatIsLeftAltogetherIsMadeAndMadeAgainButNotChanged)
}

func testAnObjectThatIsLeftAltogetherIsMadeAndMadeAgainButNotChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("ignore-all")
	rule := ignoring(tunnel.Ignore{Kind: "ConfigMap", Name: "one"})
	both := func(v string) string { return configMap(ns, "one", "k", v) + configMap(ns, "two", "k", v) }
	b.apply("ignore-all", ns, both("1"), rule)
	b.edit(configmaps, ns, "one", "somebody", `{"data":{"k":"edited","more":"x"},"metadata":{"labels":null}}`)
	marked := func(u *unstructured.Unstructured) bool { return u.GetLabels()["convoy.kumodo.io/managed"] == hubID }
	b.live(configmaps, ns, "one", "marked again", marked)
	b.apply("ignore-all", ns, both("2"), rule)
	if got := b.get(configmaps, ns, "one"); data(got, "k") != "edited" || data(got, "more") != "x" || !marked(got) {
		t.Errorf("the object is %v", got.Object)
	}
	if got := b.get(configmaps, ns, "two"); data(got, "k") != "2" {
		t.Errorf("the other one has %v", got.Object["data"])
	}
	if err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Delete(b.ctx, "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.live(configmaps, ns, "one", "made again", func(u *unstructured.Unstructured) bool { return data(u, "k") == "2" })
}

func TestARuleThatCannotBeJudgedIsSaidAndTakesNothing(t *testing.T) {
	inModes(t, testARuleThatCannotBeJudgedIsSaidAndTakesNothing)
}

func testARuleThatCannotBeJudgedIsSaidAndTakesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("ignore-failing")
	rule := ignoring(tunnel.Ignore{When: "object.metadata.labels.tier == 'gold'", Pointers: []string{"/data/theirs"}})
	o := b.accept(b.order("ignore-failing", ns, configMap(ns, "one", "ours", "1", "theirs", "1"), rule))
	r := b.report(o.Release.UID, "not sure", func(r tunnel.Report) bool { return r.Settled && r.InSync.Status == tunnel.Unknown })
	if !strings.Contains(r.InSync.Message, "rule 1 of drift.ignore cannot be judged") || !strings.Contains(r.InSync.Message, "since 20") || len(r.Exceptions) != 1 {
		t.Errorf("the report says %+v %+v", r.InSync, r.Exceptions)
	}
	b.edit(configmaps, ns, "one", "somebody", `{"data":{"theirs":"edited"}}`)
	b.settle()
	if got := b.get(configmaps, ns, "one"); data(got, "theirs") != "edited" {
		t.Errorf("what may be somebody's was taken: %v", got.Object["data"])
	}
	b.edit(configmaps, ns, "one", "somebody", `{"metadata":{"labels":{"tier":"silver"}}}`)
	b.live(configmaps, ns, "one", "repaired, now that the rule does not hold", func(u *unstructured.Unstructured) bool { return data(u, "theirs") == "1" })
	b.applied(o)
}

func TestAComparisonThatFailsIsUnknownUntilItDoesNot(t *testing.T) {
	inModes(t, testAComparisonThatFailsIsUnknownUntilItDoesNot)
}

func testAComparisonThatFailsIsUnknownUntilItDoesNot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("compare-fails")
	b.apply("compare-fails", ns, configMap(ns, "one", "k", "v"))
	fail := func(_ int64, req *http.Request) error {
		if strings.Contains(req.URL.RawQuery, "dryRun=All") {
			return errAway
		}
		return nil
	}
	b.calls.before.Store(&fail)
	b.edit(configmaps, ns, "one", "somebody", `{"data":{"k":"edited"}}`)
	r := b.report("uid-compare-fails", "unknown", func(r tunnel.Report) bool { return r.InSync.Status == tunnel.Unknown })
	if len(r.Exceptions) != 1 || r.Exceptions[0].Reason != "Unreachable" || r.Exceptions[0].Since.IsZero() ||
		!strings.Contains(r.InSync.Message, "ConfigMap compare-fails/one: cannot be compared") || !strings.HasPrefix(r.InSync.Message, "since 20") {
		t.Errorf("the report says %+v %+v", r.InSync, r.Exceptions)
	}
	b.calls.before.Store(nil)
	b.live(configmaps, ns, "one", "healed", func(u *unstructured.Unstructured) bool { return data(u, "k") == "v" })
	b.report("uid-compare-fails", "in sync", func(r tunnel.Report) bool {
		return r.Settled && r.InSync.Status == tunnel.True && len(r.Exceptions) == 0
	})
}

func TestASuspendedReleaseTellsItsDriftAndChangesNothing(t *testing.T) {
	inModes(t, testASuspendedReleaseTellsItsDriftAndChangesNothing)
}

func testASuspendedReleaseTellsItsDriftAndChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("suspended")
	documents := configMap(ns, "one", "k", "v") + configMap(ns, "two", "k", "v")
	suspend := func(o *tunnel.Order) {
		o.Policy.Suspended, o.Requires = true, []string{tunnel.FeatureSuspend}
	}
	b.apply("suspended", ns, documents)
	from := b.calls.n.Load()
	b.apply("suspended", ns, documents, suspend)
	b.edit(configmaps, ns, "one", "somebody", `{"data":{"k":"edited"}}`)
	if err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Delete(b.ctx, "two", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r := b.report("uid-suspended", "both drifted", func(r tunnel.Report) bool {
		return r.Settled && r.InSync.Status == tunnel.False && r.Counts.Drifted == 2
	})
	if len(r.Exceptions) < 2 || !strings.Contains(r.InSync.Message, `one data.k changed by "somebody"`) || r.Applied.Status != tunnel.True {
		t.Errorf("the report says %+v %+v %+v", r.Applied, r.InSync, r.Exceptions)
	}
	b.restart()
	b.report("uid-suspended", "both drifted after a restart", func(r tunnel.Report) bool {
		return r.Settled && r.InSync.Status == tunnel.False && r.Counts.Drifted == 2
	})
	if made := b.changing(from); len(made) > 0 {
		t.Errorf("while suspended: %v", made)
	}
	b.apply("suspended", ns, documents)
	if got := b.get(configmaps, ns, "one"); data(got, "k") != "v" {
		t.Errorf("after the suspension the data are %v", got.Object["data"])
	}
	b.get(configmaps, ns, "two")
}

func TestAtRestRulesAndAutoscalersCostNoCalls(t *testing.T) {
	inModes(t, testAtRestRulesAndAutoscalersCostNoCalls)
}

func testAtRestRulesAndAutoscalersCostNoCalls(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("ignore-rest")
	var documents strings.Builder
	for i := range 40 {
		documents.WriteString(configMap(ns, fmt.Sprintf("c%d", i), "ours", "1", "theirs", "1"))
	}
	documents.WriteString(web("replicas: 3", "example/app:1") + scaler(metricCPU))
	b.there("ignore-rest", ns, documents.String(), ignoring(
		tunnel.Ignore{Kind: "ConfigMap", When: "object.data.ours == '1'", Pointers: []string{"/data/theirs"}},
		tunnel.Ignore{Kind: "ConfigMap", Managers: []string{"somebody"}},
	), func(o *tunnel.Order) { o.Policy.TimeoutSeconds = 1 })
	b.scale(ns, "web", "kube-controller-manager", 6)
	b.report("uid-ignore-rest", "in sync", func(r tunnel.Report) bool {
		return r.Operation != nil && r.Operation.Phase != v1alpha1.PhaseRunning && r.InSync.Status == tunnel.True
	})
	idle := func(what string) {
		t.Helper()
		b.settle() // what is saved and tidied up is so by then
		b.settle()
		from := b.calls.n.Load()
		b.edit(configmaps, ns, "c7", "somebody", `{"data":{"theirs":"`+strings.ReplaceAll(what, " ", "-")+`","more":"x"}}`)
		b.scale(ns, "web", "kube-controller-manager", 5+len(what)%3)
		b.settle()
		if made := b.calls.since(from); len(made) > 0 {
			t.Errorf("calls %s: %v", what, made)
		}
	}
	idle("after the apply")
	idle("of another number")
	b.restart()
	// The autoscaler has no metrics here, and for a while that is no more than progress.
	b.report("uid-ignore-rest", "in sync after a restart", func(r tunnel.Report) bool {
		return r.InSync.Status == tunnel.True && r.Counts.Applied == r.Counts.Total
	})
	idle("after a restart")
}
