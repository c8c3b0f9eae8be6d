// SPDX-License-Identifier: Apache-2.0

package healthrule

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/api/extensions/v1alpha1"
	"kumodo.io/convoy/pkg/health"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestWhichRulesJudgeAReleaseAndInWhichOrder(t *testing.T) {
	t.Parallel()
	sets := []v1alpha1.RuleSet{
		own("team", "b", rule("Queue", "true")), own("team", "a", rule("Topic", "true")),
		own("other", "c", rule("Broker", "true")),
		global("b", rule("Global", "true")), global("a-all", rule("All", "true")),
	}
	for name, c := range map[string]struct {
		names   []string
		want    []string
		missing []string
	}{
		"all of the namespace by name, then all global ones by name, when none is named": {
			want: []string{"team/a Topic", "team/b Queue", "a-all All", "b Global"},
		},
		"those that are named, as they are named": {
			names: []string{"a-all", "a"}, want: []string{"a-all All", "team/a Topic"},
		},
		"one of the namespace before a global one of the same name": {
			names: []string{"b"}, want: []string{"team/b Queue"},
		},
		"never one of another namespace": {
			names: []string{"c", "a"}, want: []string{"team/a Topic"}, missing: []string{"c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, r := newWorld(t, sets...)
			got := r.document(choose(r.Cache, "team", c.names))
			var document health.Document
			if err := json.Unmarshal(got.Bytes, &document); err != nil {
				t.Fatal(err)
			}
			var rules []string
			for _, rule := range document.Rules {
				rules = append(rules, rule.Set+" "+rule.Kind)
			}
			if diff := cmp.Diff(c.want, rules); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.missing, got.Missing); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			if _, err := health.Parse(got.Bytes); err != nil {
				t.Errorf("agents cannot read it: %v", err)
			}
		})
	}
}

func TestWithoutARuleThereIsNoLayer(t *testing.T) {
	t.Parallel()
	for name, sets := range map[string][]v1alpha1.RuleSet{
		"no set at all":                         nil,
		"a set of another namespace":            {own("other", "a", rule("Queue", "true"))},
		"a set of which no rule can be used":    {own("team", "a", rule("Queue", "true +"))},
		"a global set of which none can either": {global("a", rule("Queue", "true +"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, r := newWorld(t, sets...)
			order := w.order(t, r, release("web"))
			if diff := cmp.Diff(tunnel.Order{ClusterUID: "edge-uid"}, order); diff != "" || w.puts != 0 {
				t.Errorf("%d writes to the store; the order (-want +got):\n%s", w.puts, diff)
			}
		})
	}
}

func TestABrokenRuleIsLeftOutAndTheOthersAreUsed(t *testing.T) {
	t.Parallel()
	_, r := newWorld(t, own("team", "a", rule("Queue", "object.spec +"), rule("Topic", "object.status.ready")))
	got := string(r.document(choose(r.Cache, "team", nil)).Bytes)
	want := `{"rules":[{"set":"team/a","group":"mq.example","kind":"Topic","healthy":"object.status.ready"}]}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
}

func TestOneDocumentIsSharedByAllThatUseTheSameSets(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t, global("a", rule("Queue", "cluster.region == 'eu'")))
	first, second := w.order(t, r, release("web")), w.order(t, r, release("api", "a"))
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("orders (-first +second):\n%s", diff)
	}
	if w.puts != 1 {
		t.Errorf("stored %d times, want once", w.puts)
	}
	if got := w.stored(t, first.Rules); !strings.Contains(got, "cluster.region") {
		t.Errorf("stored: %s", got)
	}
	if diff := cmp.Diff(map[string]string{"cluster.region": "eu"}, first.Facts); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

func TestASetThatDoesNotFitAnyMoreIsLeftOutAsAWhole(t *testing.T) {
	t.Parallel()
	big := func(name string) *v1alpha1.HealthRuleSet {
		set := own("team", name)
		for _, one := range many(40) {
			one.Healthy = "object.x == '" + strings.Repeat("x", 3000) + "'"
			set.Spec.Rules = append(set.Spec.Rules, one)
		}
		return set
	}
	for name, sets := range map[string][]v1alpha1.RuleSet{
		"of bytes": {big("a"), big("b"), big("c"), big("d"), big("e")},
		"of facts": {own("team", "a", many(60)...), own("team", "b", rename(many(60))...), own("team", "e", rule("Queue", "self.labels.x == 'y'"), rule("Q", "self.labels.a == 'a' && self.labels.b == 'b' && self.labels.c == 'c' && self.labels.d == 'd' && self.labels.e == 'e' && self.labels.f == 'f' && self.labels.g == 'g' && self.labels.h == 'h'"))},
	} {
		t.Run("too much "+name, func(t *testing.T) {
			t.Parallel()
			_, r := newWorld(t, sets...)
			got := r.document(choose(r.Cache, "team", nil))
			if diff := cmp.Diff([]string{"team/e (too large beside those before it)"}, got.Missing); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			if len(got.Bytes) == 0 || len(got.Bytes) > health.MaxDocument || strings.Contains(string(got.Bytes), `"team/e"`) {
				t.Errorf("%d bytes", len(got.Bytes))
			}
		})
	}
}

// rename gives rules other facts.
func rename(rules []v1alpha1.HealthRule) []v1alpha1.HealthRule {
	for i := range rules {
		rules[i].Healthy = strings.Replace(rules[i].Healthy, "key", "other", 1)
	}
	return rules
}
