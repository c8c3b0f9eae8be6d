// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"kumodo.io/convoy/pkg/expression"
	"kumodo.io/convoy/pkg/health"
)

func parse(t testing.TB, rules ...health.Rule) *health.Rules {
	t.Helper()
	raw, err := json.Marshal(health.Document{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := health.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// TestRulesOfUsers: which rule decides, and how.
func TestRulesOfUsers(t *testing.T) {
	t.Parallel()
	const thing = "apiVersion: x.test/v1\nkind: Thing\nmetadata: {name: t}\nstatus: {phase: %s}"
	byPhase := health.Rule{
		Set: "ns/things", Group: "x.test", Kind: "Thing",
		Degraded: `object.status.phase == "Bad"`, Suspended: `object.status.phase == "Held"`, Progressing: `object.status.phase == "Busy"`,
		Healthy: `object.status.phase == "Good"`, Message: `"phase " + object.status.phase`,
	}
	anything := health.Rule{Set: "all", Group: "x.test", Kind: "*", Progressing: "true"}
	tests := map[string]struct {
		rules  []health.Rule
		facts  map[string]string
		object string
		want   health.Verdict
		none   bool
	}{
		"what is said healthy":                       {rules: []health.Rule{byPhase}, object: fmt.Sprintf(thing, "Good"), want: health.Verdict{State: health.Healthy}},
		"what is said degraded is so for good":       {rules: []health.Rule{byPhase}, object: fmt.Sprintf(thing, "Bad"), want: health.Verdict{State: health.Degraded, Message: "phase Bad", Final: true}},
		"what is said suspended":                     {rules: []health.Rule{byPhase}, object: fmt.Sprintf(thing, "Held"), want: health.Verdict{State: health.Suspended, Message: "phase Held"}},
		"what is said progressing":                   {rules: []health.Rule{byPhase}, object: fmt.Sprintf(thing, "Busy"), want: health.Verdict{State: health.Progressing, Message: "phase Busy"}},
		"what is not said healthy is progressing":    {rules: []health.Rule{byPhase}, object: fmt.Sprintf(thing, "Other"), want: health.Verdict{State: health.Progressing, Message: "phase Other"}},
		"without a word on healthy all else is":      {rules: []health.Rule{{Set: "s", Group: "x.test", Kind: "Thing", Degraded: "false"}}, object: fmt.Sprintf(thing, "Other"), want: health.Verdict{State: health.Healthy}},
		"degraded goes before healthy":               {rules: []health.Rule{{Set: "s", Group: "x.test", Kind: "Thing", Degraded: "true", Healthy: "true"}}, object: fmt.Sprintf(thing, "x"), want: health.Verdict{State: health.Degraded, Message: "by health rule s for Thing", Final: true}},
		"the first of two rules decides":             {rules: []health.Rule{byPhase, anything}, object: fmt.Sprintf(thing, "Good"), want: health.Verdict{State: health.Healthy}},
		"a rule for all kinds before one for one":    {rules: []health.Rule{anything, byPhase}, object: fmt.Sprintf(thing, "Good"), want: health.Verdict{State: health.Progressing, Message: "by health rule all for *"}},
		"a rule for all kinds of its group alone":    {rules: []health.Rule{anything}, object: "apiVersion: y.test/v1\nkind: Thing", none: true},
		"a rule for another kind":                    {rules: []health.Rule{byPhase}, object: "apiVersion: x.test/v1\nkind: Other", none: true},
		"a rule for any version":                     {rules: []health.Rule{anything}, object: "apiVersion: x.test/v2beta1\nkind: Thing", want: health.Verdict{State: health.Progressing, Message: "by health rule all for *"}},
		"a rule for the core group":                  {rules: []health.Rule{{Set: "s", Kind: "Service", Healthy: "true"}}, object: "apiVersion: v1\nkind: Service\nspec: {type: LoadBalancer}", want: health.Verdict{State: health.Healthy}},
		"what is being deleted is so for every rule": {rules: []health.Rule{{Set: "s", Group: "x.test", Kind: "Thing", Healthy: "true"}}, object: "apiVersion: x.test/v1\nkind: Thing\nmetadata: {deletionTimestamp: now, finalizers: [a/b]}", want: health.Verdict{State: health.Terminating, Message: "is being deleted, held by finalizer a/b"}},
		"facts": {rules: []health.Rule{{Set: "s", Group: "x.test", Kind: "Thing", Healthy: `cluster.region == "eu" && self.labels.team == "a"`}}, facts: map[string]string{"cluster.region": "eu", "self.labels.team": "a"}, object: fmt.Sprintf(thing, "x"), want: health.Verdict{State: health.Healthy}},
		"HL-07 a rule on a field that is not there":    {rules: []health.Rule{byPhase}, object: "apiVersion: x.test/v1\nkind: Thing\nstatus: {}", want: health.Verdict{State: health.Unknown, Message: "health rule ns/things for Thing fails: degraded: the expression fails: no such key: phase"}},
		"HL-07 a rule on a status that is text":        {rules: []health.Rule{byPhase}, object: "apiVersion: x.test/v1\nkind: Thing\nstatus: running", want: health.Verdict{State: health.Unknown, Message: "health rule ns/things for Thing fails: degraded: the expression fails: no such key: phase"}},
		"HL-07 a rule on conditions of odd shapes":     {rules: []health.Rule{{Set: "s", Group: "x.test", Kind: "Thing", Healthy: `object.status.conditions.exists(c, c.type == "Ready" && c.status == "True")`}}, object: "apiVersion: x.test/v1\nkind: Thing\nstatus: {conditions: [text, {}, null, {type: Ready, status: \"True\"}]}", want: health.Verdict{State: health.Healthy}},
		"a rule that does not compile":                 {rules: []health.Rule{{Set: "s", Group: "x.test", Kind: "Thing", Healthy: `"yes"`}}, object: fmt.Sprintf(thing, "x"), want: health.Verdict{State: health.Unknown, Message: "health rule s for Thing fails: healthy: the expression cannot be read: it gives string, not true or false"}},
		"a message that fails does not hide the state": {rules: []health.Rule{{Set: "s", Group: "x.test", Kind: "Thing", Degraded: "true", Message: "object.a"}}, object: fmt.Sprintf(thing, "x"), want: health.Verdict{State: health.Degraded, Message: "by health rule s for Thing, whose message fails: the expression fails: no such key: a", Final: true}},
		"an empty message":                             {rules: []health.Rule{{Set: "s", Group: "x.test", Kind: "Thing", Progressing: "true", Message: `""`}}, object: fmt.Sprintf(thing, "x"), want: health.Verdict{State: health.Progressing, Message: "by health rule s for Thing"}},
		"a Secret's values are not shown to rules": {
			rules:  []health.Rule{{Set: "s", Kind: "Secret", Degraded: `"password" in object.data`, Message: `object.data.password + "/" + (has(object.metadata.annotations) ? "seen" : "hidden") + "/" + object.metadata.name`}},
			object: "apiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {a: c2VjcmV0}}\ndata: {password: c2VjcmV0}",
			want:   health.Verdict{State: health.Degraded, Message: "***/hidden/s", Final: true},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := read(t, test.object)
			before := runtime.DeepCopyJSON(live)
			got, ok := parse(t, test.rules...).Judge(live, test.facts)
			if ok == test.none {
				t.Fatalf("a rule decided: %v", ok)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, live); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
		})
	}
}

func TestOneBrokenRuleHarmsNoOther(t *testing.T) {
	t.Parallel()
	rules := parse(t, health.Rule{Set: "a", Kind: "ConfigMap", Healthy: "no such ("}, health.Rule{Set: "b", Kind: "Service", Degraded: "true"})
	for text, want := range map[string]health.State{"apiVersion: v1\nkind: ConfigMap": health.Unknown, "apiVersion: v1\nkind: Service": health.Degraded} {
		if got, ok := rules.Judge(read(t, text), nil); !ok || got.State != want {
			t.Errorf("%q is judged %v, want %s", text, got, want)
		}
	}
	if rules.Selects("", "Pod") || !rules.Selects("", "Service") {
		t.Error("rules select what they are not for")
	}
}

func TestRulesCanBeUsedByManyAtOnce(t *testing.T) {
	t.Parallel()
	bound := parse(t, health.Rule{Set: "a", Kind: "ConfigMap", Healthy: `object.data.k == "v"`}).Bind(nil)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			for range 50 {
				if got, ok := bound.Judge(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": "v"}}); !ok || got.State != health.Healthy {
					t.Errorf("judged %v", got)
					return
				}
			}
		})
	}
	group.Wait()
}

func TestNoRulesSelectNothing(t *testing.T) {
	t.Parallel()
	var bound *health.Bound
	if _, ok := bound.Judge(map[string]any{}); ok || bound.Selects("", "Pod") {
		t.Error("no rules decided")
	}
	var rules *health.Rules
	if rules.Selects("", "Pod") {
		t.Error("no rules select")
	}
}

func TestADocumentHasLimits(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string][]byte{
		"not JSON":          []byte("rules: []"),
		"of the wrong type": []byte(`{"rules":{}}`),
		"too large":         []byte(`{"rules":[{"set":"` + strings.Repeat("a", health.MaxDocument) + `"}]}`),
		"too many rules":    []byte(`{"rules":[` + strings.TrimSuffix(strings.Repeat(`{},`, health.MaxRules+1), ",") + `]}`),
	} {
		if _, err := health.Parse(raw); !errors.Is(err, health.ErrDocument) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARuleIsCheckedFieldByField(t *testing.T) {
	t.Parallel()
	faults, reads := health.Check(health.Rule{
		Healthy: "cluster.a == self.name", Degraded: "(", Suspended: "size(cluster) > 0", Message: "true", Progressing: "self.labels.x == cluster.b",
	})
	got := map[string]error{}
	for _, f := range faults {
		got[f.Field] = f.Err
	}
	for field, want := range map[string]error{"degraded": expression.ErrSyntax, "suspended": expression.ErrWhole, "message": expression.ErrSyntax} {
		if !errors.Is(got[field], want) {
			t.Errorf("%s: %v, want %v", field, got[field], want)
		}
	}
	if diff := cmp.Diff([]string{"cluster.a", "cluster.b", "self.labels.x", "self.name"}, reads); diff != "" || len(faults) != 3 {
		t.Errorf("%d faults, reads (-want +got):\n%s", len(faults), diff)
	}
}
