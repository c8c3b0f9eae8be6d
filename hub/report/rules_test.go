// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	extensionsv1alpha1 "kumodo.io/convoy/api/extensions/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// say gives a condition of a Release as "Status Reason".
func (h *hub) say(t *testing.T, key types.NamespacedName, condition string) string {
	t.Helper()
	release, ok := h.Release(key)
	if !ok {
		t.Fatalf("there is no %s", key)
	}
	c := meta.FindStatusCondition(release.Status.Conditions, condition)
	return string(c.Status) + " " + c.Reason
}

func TestAReleaseIsNotHealthyWithoutTheRulesThatItNames(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		var missing []string
		h.reporter.JudgedBy(func(*corev1alpha1.Release) []string { return missing })
		web := h.ordered(t, "web")
		again := func() {
			t.Helper()
			release, _ := h.Release(web)
			if err := h.reporter.Release(t.Context(), web, release.UID, Outcome{Generation: 1}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		expect := func(when, healthy, ready string) {
			t.Helper()
			got := []string{h.say(t, web, "Healthy"), h.say(t, web, "Ready")}
			if diff := cmp.Diff([]string{healthy, ready}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}

		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1)})
		expect("with all rules", "True Healthy", "True Ready")
		missing = []string{"queues"}
		again()
		expect("when a set has gone", "Unknown HealthRulesMissing", "Unknown HealthRulesMissing")
		release, _ := h.Release(web)
		if c := meta.FindStatusCondition(release.Status.Conditions, "Ready"); !strings.Contains(c.Message, "queues") {
			t.Errorf("the message names no set: %s", c.Message)
		}
		h.counted()
		again()
		if writes := h.counted(); len(writes) > 0 {
			t.Errorf("it is written again: %v", writes)
		}
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 2)})
		expect("when the agent reports meanwhile", "Unknown HealthRulesMissing", "Unknown HealthRulesMissing")
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 3, func(r *tunnel.Report) {
			r.Healthy = tunnel.Finding{Status: tunnel.False, Reason: "Degraded", Message: "Queue a"}
		})})
		expect("bad news stay", "False Degraded", "False Degraded")
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 4)})
		expect("good news stay away", "Unknown HealthRulesMissing", "Unknown HealthRulesMissing")

		missing = nil
		newest := report("web", 4) // nothing has changed since
		h.mu.Lock()
		h.answers["uid-web"], h.asked = &newest, nil
		h.mu.Unlock()
		again()
		pass(time.Minute)
		if diff := cmp.Diff([]types.UID{"uid-web"}, h.questions()); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
		expect("when the set is there again", "True Healthy", "True Ready")
	})
}

func TestTheStatusOfARuleSetIsWrittenOnceForEachGeneration(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		h.reporter.options.RuleSets = h
		h.reporter.options.RuleSetStores = map[string]RuleSetStore{
			"HealthRuleSet":       RuleSetStatus(table[*extensionsv1alpha1.HealthRuleSet]{h, "HealthRuleSet"}),
			"GlobalHealthRuleSet": RuleSetStatus(table[*extensionsv1alpha1.GlobalHealthRuleSet]{h, "GlobalHealthRuleSet"}),
		}
		own := &extensionsv1alpha1.HealthRuleSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "queues", UID: "o"}}
		global := &extensionsv1alpha1.GlobalHealthRuleSet{ObjectMeta: metav1.ObjectMeta{Name: "queues", UID: "g"}}
		h.add("HealthRuleSet", own)
		h.add("GlobalHealthRuleSet", global)
		broken := RuleSetOutcome{
			Generation: 2, Ready: Finding{metav1.ConditionFalse, "RulesFailed", "1 of 2"},
			Errors: []extensionsv1alpha1.RuleError{{Field: "rules[1].healthy", Message: "no"}},
		}
		for range 2 {
			for _, set := range []extensionsv1alpha1.RuleSet{own, global} {
				if err := h.reporter.RuleSet(t.Context(), set, broken); err != nil {
					t.Fatal(err)
				}
			}
		}
		if diff := cmp.Diff([]string{"HealthRuleSet queues", "GlobalHealthRuleSet queues"}, h.counted()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		written, _ := h.RuleSet(types.NamespacedName{Namespace: "team", Name: "queues"})
		status := written.RuleSetStatus()
		if status.ObservedGeneration != 2 || len(status.Errors) != 1 || meta.FindStatusCondition(status.Conditions, "Ready").Reason != "RulesFailed" {
			t.Errorf("status: %+v", status)
		}
		h.remove("HealthRuleSet", "queues")
		if err := h.reporter.RuleSet(t.Context(), own, broken); !errors.Is(err, ErrGone) {
			t.Errorf("of one that is gone: %v", err)
		}
	})
}

// RuleSet implements RuleSets.
func (h *hub) RuleSet(key types.NamespacedName) (extensionsv1alpha1.RuleSet, bool) {
	if key.Namespace == "" {
		return lookup[*extensionsv1alpha1.GlobalHealthRuleSet](h, "GlobalHealthRuleSet", key)
	}
	return lookup[*extensionsv1alpha1.HealthRuleSet](h, "HealthRuleSet", key)
}

func (h *hub) PutRuleSet(extensionsv1alpha1.RuleSet) {}
