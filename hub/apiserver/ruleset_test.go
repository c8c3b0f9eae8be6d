// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	extensionsv1alpha1 "kumodo.io/convoy/api/extensions/v1alpha1"
	"kumodo.io/convoy/hub/apiserver"
	"kumodo.io/convoy/hub/apiserver/apiservertest"
)

func newRuleSet(namespace, name string) *extensionsv1alpha1.HealthRuleSet {
	return &extensionsv1alpha1.HealthRuleSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: extensionsv1alpha1.HealthRuleSetSpec{Rules: []extensionsv1alpha1.HealthRule{
			{Group: "mq.example", Kind: "Queue", Healthy: `object.status.ready == true`},
			{Group: "mq.example", Kind: "Topic", Degraded: `has(object.status.error)`},
		}},
	}
}

func TestRuleSetsAreStoredWithoutAShardAndGlobalOnesWithoutANamespace(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	c := newClient(t, s)
	own := newRuleSet("team", "queues")
	global := &extensionsv1alpha1.GlobalHealthRuleSet{ObjectMeta: metav1.ObjectMeta{Name: "queues"}, Spec: own.Spec}
	create(t, c, own, global)
	if own.Generation != 1 || own.Labels[corev1alpha1.LabelShard] != "" || global.Labels[corev1alpha1.LabelShard] != "" {
		t.Errorf("got generation %d, labels %v and %v", own.Generation, own.Labels, global.Labels)
	}
	for _, key := range []string{"/healthrulesets/team/queues", "/globalhealthrulesets/queues"} {
		answer, err := s.EtcdClient().Get(t.Context(), apiserver.EtcdPrefix+"/extensions.convoy.kumodo.io"+key)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Count != 1 {
			t.Errorf("nothing lies at %s", key)
		}
	}
	if a := raw(t, s, http.MethodPost, rulesPath+"/namespaces/team/globalhealthrulesets", `{}`); a.code != http.StatusNotFound {
		t.Errorf("a global set in a namespace: %d %s", a.code, a.body)
	}
	for path, want := range map[string][]any{
		rulesPath + "/namespaces/team/healthrulesets": {"queues", float64(2), "Unknown", "", "AGE", "Queue.mq.example,Topic.mq.example", ""},
		rulesPath + "/globalhealthrulesets":           {"queues", float64(2), "Unknown", "", "AGE", "Queue.mq.example,Topic.mq.example", ""},
	} {
		narrow, wide, rows := table(t, s, path)
		if diff := cmp.Diff([]string{"Name", "Rules", "Ready", "Reason", "Age"}, narrow); diff != "" {
			t.Errorf("%s: columns (-want +got):\n%s", path, diff)
		}
		if diff := cmp.Diff([]string{"Kinds", "Message"}, wide); diff != "" {
			t.Errorf("%s: wide columns (-want +got):\n%s", path, diff)
		}
		rows[0][4] = "AGE"
		if diff := cmp.Diff(want, rows[0]); diff != "" {
			t.Errorf("%s: row (-want +got):\n%s", path, diff)
		}
	}
}

func TestTheStatusOfARuleSetIsWrittenApartFromItsRules(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	c := newClient(t, s)
	set := newRuleSet("team", "queues")
	set.Status.ObservedGeneration = 9
	create(t, c, set)
	if set.Status.ObservedGeneration != 0 {
		t.Error("whoever makes a set says in its status what the hub has not looked at")
	}
	out, err := s.Storage().HealthRuleSets.UpdateStatus(t.Context(), types.NamespacedName{Namespace: "team", Name: "queues"}, "", func(set *extensionsv1alpha1.HealthRuleSet) error {
		set.Spec.Rules = nil
		set.Status.ObservedGeneration = 1
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if out.Generation != 1 || len(out.Spec.Rules) != 2 || out.Status.ObservedGeneration != 1 {
		t.Errorf("after a write of the status: generation %d, %d rules, observed %d", out.Generation, len(out.Spec.Rules), out.Status.ObservedGeneration)
	}
	out.Spec.Rules[0].Healthy = "true"
	out.Status.ObservedGeneration = 7
	if err := c.Update(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	if out.Generation != 2 || out.Status.ObservedGeneration != 1 {
		t.Errorf("after a write of the rules: generation %d, observed %d", out.Generation, out.Status.ObservedGeneration)
	}
	_, err = s.Storage().HealthRuleSets.UpdateStatus(t.Context(), types.NamespacedName{Namespace: "team", Name: "queues"}, "", func(set *extensionsv1alpha1.HealthRuleSet) error {
		set.Status.Errors = make([]extensionsv1alpha1.RuleError, 17)
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "status.errors") {
		t.Errorf("17 errors in a status: %v", err)
	}
}

func TestTheShapeOfRulesIsCheckedAndTheirExpressionsAreNot(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	long := strings.Repeat("x", 4097)
	for name, c := range map[string]struct {
		rules string
		code  int
		want  []string
	}{
		"an expression that does not compile is told in the status": {
			rules: `[{"kind":"Queue","healthy":"object.status ="}]`, code: http.StatusCreated,
		},
		"no rule": {
			rules: `[]`, code: http.StatusUnprocessableEntity, want: []string{"spec.rules: Required"},
		},
		"a rule that judges nothing": {
			rules: `[{"kind":"Queue","message":"'x'"}]`, code: http.StatusUnprocessableEntity, want: []string{"spec.rules[0]: Required", "at least one of healthy"},
		},
		"no kind": {
			rules: `[{"healthy":"true"}]`, code: http.StatusUnprocessableEntity, want: []string{"spec.rules[0].kind: Required"},
		},
		"a plural name for a kind, with a group in it": {
			rules: `[{"kind":"queues.mq.example","healthy":"true"}]`, code: http.StatusUnprocessableEntity, want: []string{"spec.rules[0].kind: Invalid", "as in Deployment"},
		},
		"a group with its version": {
			rules: `[{"group":"mq.example/v1","kind":"Queue","healthy":"true"}]`, code: http.StatusUnprocessableEntity, want: []string{"spec.rules[0].group: Invalid"},
		},
		"two rules for a kind": {
			rules: `[{"kind":"Queue","healthy":"true"},{"kind":"Queue","healthy":"false"}]`, code: http.StatusUnprocessableEntity, want: []string{"spec.rules[1].kind: Duplicate"},
		},
		"an expression that is too long": {
			rules: `[{"kind":"Queue","healthy":"` + long + `"}]`, code: http.StatusUnprocessableEntity, want: []string{"spec.rules[0].healthy: Too long"},
		},
		"a misspelt field": {
			rules: `[{"kind":"Queue","healty":"true"}]`, code: http.StatusBadRequest, want: []string{`unknown field \"spec.rules[0].healty\"`},
		},
		"more rules than a set may have": {
			rules: `[` + strings.TrimSuffix(strings.Repeat(`{"kind":"Queue","healthy":"true"},`, 65), ",") + `]`, code: http.StatusUnprocessableEntity, want: []string{"spec.rules: Too many: 65"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for path, head := range map[string]string{
				rulesPath + "/namespaces/team/healthrulesets": `"kind":"HealthRuleSet"`,
				rulesPath + "/globalhealthrulesets":           `"kind":"GlobalHealthRuleSet"`,
			} {
				a := raw(t, s, http.MethodPost, path+"?fieldValidation=Strict&dryRun=All",
					`{"apiVersion":"extensions.convoy.kumodo.io/v1alpha1",`+head+`,"metadata":{"name":"queues"},"spec":{"rules":`+c.rules+`}}`)
				if a.code != c.code {
					t.Errorf("%s: code %d, want %d: %s", path, a.code, c.code, a.body)
				}
				for _, want := range c.want {
					if !strings.Contains(a.body, want) {
						t.Errorf("%s: the answer does not contain %q:\n%s", path, want, a.body)
					}
				}
			}
		})
	}
	a := raw(t, s, http.MethodPost, rulesPath+"/globalhealthrulesets?dryRun=All",
		`{"apiVersion":"extensions.convoy.kumodo.io/v1alpha1","kind":"GlobalHealthRuleSet","metadata":{"name":"queues"},"spec":{"rules":[{"group":"mq.example","kind":"*","healthy":"true"},{"group":"mq.example","kind":"Queue","healthy":"true"}]}}`)
	if len(a.warning) != 1 || !strings.Contains(a.warning[0], "spec.rules[1]: never used") {
		t.Errorf("a rule behind one for all kinds: %d, warnings %q", a.code, a.warning)
	}
}
