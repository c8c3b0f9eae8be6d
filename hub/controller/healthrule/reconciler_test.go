// SPDX-License-Identifier: Apache-2.0

package healthrule

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/api/extensions/v1alpha1"
	"kumodo.io/convoy/hub/report"
)

func TestTheStatusSaysWhichRulesCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set     v1alpha1.RuleSet
		ready   report.Finding
		message string
		fields  []string
	}{
		"all compile": {
			set:   own("team", "a", rule("Queue", "true"), rule("Topic", "object.x")),
			ready: report.Finding{Status: metav1.ConditionTrue, Reason: "Compiled"}, message: "rules in use: 2",
		},
		"of a global set too": {
			set:   global("a", rule("Queue", "true")),
			ready: report.Finding{Status: metav1.ConditionTrue, Reason: "Compiled"}, message: "rules in use: 1",
		},
		"one has no syntax, one the wrong type, one reads all of cluster": {
			set: own("team", "a", rule("Queue", "true"), v1alpha1.HealthRule{
				Kind: "Topic", Healthy: "object.", Degraded: "1", Suspended: "size(cluster) > 0", Message: "true",
			}),
			ready:   report.Finding{Status: metav1.ConditionFalse, Reason: "RulesFailed"},
			message: "1 of 2 rules are left out", fields: []string{"rules[1].degraded", "rules[1].healthy", "rules[1].message", "rules[1].suspended"},
		},
		"many are broken": {
			set: own("team", "a", func() []v1alpha1.HealthRule {
				rules := many(30)
				for i := range rules {
					rules[i].Healthy = "("
				}
				return rules
			}()...),
			ready: report.Finding{Status: metav1.ConditionFalse, Reason: "RulesFailed"}, message: "30 of 30 rules are left out",
			fields: firstFields(),
		},
		"they read too much": {
			set:     own("team", "a", append(many(maxSetFacts), rule("Queue", "self.name == 'a'"))...),
			ready:   report.Finding{Status: metav1.ConditionFalse, Reason: "RulesFailed"},
			message: "1 of 65 rules are left out", fields: []string{"rules[64]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, r := newWorld(t, c.set)
			if _, err := r.Reconcile(t.Context(), keyOf(c.set)); err != nil {
				t.Fatal(err)
			}
			if len(w.told) != 1 {
				t.Fatalf("told %d times", len(w.told))
			}
			got := w.told[0]
			if got.Generation != 1 {
				t.Errorf("generation %d", got.Generation)
			}
			if diff := cmp.Diff(c.ready, got.Ready, cmpopts.IgnoreFields(report.Finding{}, "Message")); diff != "" {
				t.Errorf("ready (-want +got):\n%s", diff)
			}
			if !strings.Contains(got.Ready.Message, c.message) {
				t.Errorf("message %q, want %q in it", got.Ready.Message, c.message)
			}
			var fields []string
			for _, one := range got.Errors {
				fields = append(fields, one.Field)
				if one.Message == "" || len(one.Message) > maxErrorBytes {
					t.Errorf("%s: message %q", one.Field, one.Message)
				}
			}
			slices.Sort(fields)
			if diff := cmp.Diff(c.fields, fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

// firstFields are those that a status has room for.
func firstFields() []string {
	var out []string
	for i := range maxErrors {
		out = append(out, fmt.Sprintf("rules[%d].healthy", i))
	}
	slices.Sort(out)
	return out
}

func TestASetIsCompiledOnceForEachGeneration(t *testing.T) {
	t.Parallel()
	set := own("team", "a", rule("Queue", "true"))
	w, r := newWorld(t, set)
	first := r.books.of(set)
	again := set.DeepCopy()
	again.ResourceVersion = "9"
	if r.books.of(again) != first {
		t.Error("a write of the status has it compiled again")
	}
	again.Generation = 2
	if r.books.of(again) == first {
		t.Error("a change of the rules is not seen")
	}
	delete(w.sets, keyOf(set))
	if _, err := r.Reconcile(t.Context(), keyOf(set)); err != nil {
		t.Fatal(err)
	}
	if len(r.books.known) != 0 || len(w.told) != 0 {
		t.Errorf("%d sets are known, %d told, after it was deleted", len(r.books.known), len(w.told))
	}
}

func TestAChangeConcernsTheReleasesThatMayBeJudgedByTheSet(t *testing.T) {
	t.Parallel()
	other := release("elsewhere")
	other.Namespace = "other"
	for name, c := range map[string]struct {
		change func(r *Reconciler)
		want   []string
	}{
		"a new set of the namespace": {
			change: func(r *Reconciler) { r.Changed(nil, own("team", "a")) }, want: []string{"team/any", "team/named"},
		},
		"a global one": {
			change: func(r *Reconciler) { r.Changed(nil, global("a")) }, want: []string{"other/elsewhere", "team/any", "team/named"},
		},
		"one that was deleted": {
			change: func(r *Reconciler) { r.Changed(own("team", "a"), nil) }, want: []string{"team/any", "team/named"},
		},
		"one that only some use": {
			change: func(r *Reconciler) { r.Changed(nil, own("team", "b")) }, want: []string{"team/any"},
		},
		"a write of its status": {
			change: func(r *Reconciler) { r.Changed(own("team", "a"), own("team", "a")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, r := newWorld(t)
			w.releases = []*corev1alpha1.Release{release("any"), release("named", "x", "a"), other}
			c.change(r)
			var got []string
			for key := range w.enqueued {
				got = append(got, key.String())
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("looked at (-want +got):\n%s", diff)
			}
		})
	}
}
