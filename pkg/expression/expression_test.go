// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/pkg/expression"
)

func compile(t *testing.T, text string, as expression.Type) *expression.Program {
	t.Helper()
	program, err := expression.Compile(text, as, "object", "cluster", "self")
	if err != nil {
		t.Fatalf("Compile(%s): %v", text, err)
	}
	return program
}

func TestAnExpressionSaysWhichFactsItReads(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want []string
	}{
		"none":                                {`object.spec.replicas > 1`, nil},
		"a key by its name":                   {`cluster.region == "eu"`, []string{"cluster.region"}},
		"a key in brackets":                   {`cluster["topology/zone"] == "a"`, []string{"cluster.topology/zone"}},
		"a key that is only asked for":        {`has(cluster.region) || "zone" in cluster`, []string{"cluster.region", "cluster.zone"}},
		"a field of the Release":              {`self.name == object.metadata.name`, []string{"self.name"}},
		"a label of the Release":              {`self.labels.team == "a" || "b" in self.labels`, []string{"self.labels.b", "self.labels.team"}},
		"a label with dots":                   {`self.labels["app.example.org/name"] == "a"`, []string{"self.labels.app.example.org/name"}},
		"an annotation, two ways of brackets": {`has(self["annotations"].x) && self["annotations"]["y"] == ""`, []string{"self.annotations.x", "self.annotations.y"}},
		"inside a macro":                      {`object.l.exists(i, i == cluster.a)`, []string{"cluster.a"}},
		"not what a macro calls the same":     {`object.l.exists(cluster, cluster.a == self.name)`, []string{"self.name"}},
		"in a list and in a map":              {`{"a": cluster.a}["a"] in [cluster.b]`, []string{"cluster.a", "cluster.b"}},
		"of what comes from a text":           {`cluster.name.startsWith("x")`, []string{"cluster.name"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := compile(t, test.text, expression.Bool).Reads()
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("reads of %s (-want +got):\n%s", test.text, diff)
			}
		})
	}
}

func TestWhatCannotBeUsedIsRefusedWhenItIsCompiled(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		as   expression.Type
		want error
		says string
	}{
		"nothing":                           {"  ", expression.Bool, expression.ErrSyntax, "empty"},
		"no expression":                     {"object.", expression.Bool, expression.ErrSyntax, ""},
		"a variable that is not there":      {"objekt.a", expression.Bool, expression.ErrSyntax, "objekt"},
		"a text in place of a bool":         {`"yes"`, expression.Bool, expression.ErrSyntax, "gives string"},
		"a bool in place of a text":         {`true`, expression.Text, expression.ErrSyntax, "gives bool"},
		"too long a text":                   {strings.Repeat("true && ", 600) + "true", expression.Bool, expression.ErrTooLarge, ""},
		"nested without end":                {strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500), expression.Bool, expression.ErrSyntax, ""},
		"all of the cluster":                {`size(cluster) > 1`, expression.Bool, expression.ErrWhole, "name a key"},
		"a loop over the cluster":           {`cluster.exists(k, k == "a")`, expression.Bool, expression.ErrWhole, "name a key"},
		"a key that is known only later":    {`cluster[object.metadata.name] == "a"`, expression.Bool, expression.ErrWhole, "cluster.KEY"},
		"all labels":                        {`self.labels == object.metadata.labels`, expression.Bool, expression.ErrWhole, "self.labels.KEY"},
		"asked whether there are labels":    {`has(self.labels)`, expression.Bool, expression.ErrWhole, "self.labels.KEY"},
		"what a Release does not have":      {`self.spec == ""`, expression.Bool, expression.ErrSyntax, "targetNamespace"},
		"a fact compared with a number":     {`cluster.size > 3`, expression.Bool, expression.ErrSyntax, ""},
		"the whole of self passed through":  {`[self].exists(s, s.name == "a")`, expression.Bool, expression.ErrWhole, "name a key"},
		"the whole chosen by a condition":   {`(object.a ? cluster : cluster).b == ""`, expression.Bool, expression.ErrWhole, "name a key"},
		"a regular expression that is none": {`object.a.matches("(")`, expression.Bool, expression.ErrSyntax, ""},
		"a regular expression that is huge": {`object.a.matches("(((a{9}){9}){9}){9}")`, expression.Bool, expression.ErrSyntax, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := expression.Compile(test.text, test.as, "object", "cluster", "self")
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("Compile(%.60s) gives %v, want %v that says %q", test.text, err, test.want, test.says)
			}
		})
	}
}

func TestAProgramAnswers(t *testing.T) {
	t.Parallel()
	facts := expression.Facts(map[string]string{
		"cluster.name": "edge-1", "cluster.topology.example.org/zone": "a", "self.name": "web",
		"self.labels.app.example.org/team": "blue", "self.labels": "odd", "self.name.odd": "odd", "other.x": "odd", "self.secret": "odd",
	})
	object := map[string]any{
		"spec":   map[string]any{"replicas": int64(3), "ratio": 0.5},
		"status": map[string]any{"ready": int64(3), "conditions": []any{map[string]any{"type": "Ready", "status": "True"}, nil, "text"}},
	}
	tests := map[string]struct {
		text string
		want bool
		err  error
	}{
		"numbers":                        {`object.spec.replicas == object.status.ready && object.spec.ratio < 1`, true, nil},
		"a fact":                         {`cluster.name == "edge-1" && cluster["topology.example.org/zone"] == "a"`, true, nil},
		"a label":                        {`self.labels["app.example.org/team"] == "blue"`, true, nil},
		"a fact that is not there":       {`has(cluster.region) || has(self.labels.x) || has(self.annotations.y)`, false, nil},
		"a fact that is missed":          {`cluster.region == "eu"`, false, expression.ErrFailed},
		"a field that is missed":         {`object.status.phase == "Ready"`, false, expression.ErrFailed},
		"a list of odd things":           {`object.status.conditions.exists(c, c.type == "Ready" && c.status == "True")`, true, nil},
		"what is no bool":                {`object.spec`, false, expression.ErrFailed},
		"what costs too much is stopped": {`[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, a+b+c+d+e > 0)))))`, false, expression.ErrCost},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := map[string]any{"object": object, "cluster": facts["cluster"], "self": facts["self"]}
			got, err := compile(t, test.text, expression.Bool).Bool(facts)
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("%s gives %v, %v; want %v, %v", test.text, got, err, test.want, test.err)
			}
		})
	}
}

func TestATextIsCutAndSaysWhatItSays(t *testing.T) {
	t.Parallel()
	variables := map[string]any{"object": map[string]any{"a": strings.Repeat("ä", 5000), "n": int64(3)}}
	for text, want := range map[string]int{`object.a`: 4096, `"has " + string(object.n)`: 5} {
		program, err := expression.Compile(text, expression.Text, "object")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := program.Text(variables); err != nil || len(got) != want {
			t.Errorf("%s gives %d bytes, %v; want %d", text, len(got), err, want)
		}
	}
	program, err := expression.Compile(`object.n`, expression.Text, "object")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := program.Text(variables); !errors.Is(err, expression.ErrFailed) {
		t.Errorf("a number for a text gives %v, want ErrFailed", err)
	}
}

// TestComparingLargeObjectsIsNotFree: else a rule could hold an agent up for minutes.
func TestComparingLargeObjectsIsNotFree(t *testing.T) {
	t.Parallel()
	large := make([]any, 2000)
	for i := range large {
		large[i] = map[string]any{"name": "item", "text": strings.Repeat("x", 50)}
	}
	object := map[string]any{"large": large, "same": append([]any(nil), large...), "small": map[string]any{"a": "b"}, "list": []any{"a", "b"}}
	tests := map[string]struct {
		text string
		want error
	}{
		"all of a large list compared once":     {`object.large == object.same`, nil},
		"again and again":                       {`object.large.all(i, object.large == object.same)`, expression.ErrCost},
		"for difference":                        {`object.large.all(i, !(object.large != object.same))`, expression.ErrCost},
		"sought in a list of large things":      {`object.large.all(i, object.large in [object.same, object.large])`, expression.ErrCost},
		"small things compared again and again": {`object.large.all(i, object.small == {"a": "b"} && "b" in object.list && object.list == ["a", "b"])`, nil},
		"texts that grow":                       {`object.large.all(i, object.large.map(j, j.text + j.text + j.text).size() > 0)`, expression.ErrCost},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := compile(t, test.text, expression.Bool).Bool(map[string]any{"object": object})
			if !errors.Is(err, test.want) || got != (test.want == nil) {
				t.Errorf("%s gives %v, %v; want %v", test.text, got, err, test.want)
			}
		})
	}
}

func FuzzCompileNeverPanics(f *testing.F) {
	f.Add("cluster.a == self.labels['x'] && object.b.all(c, has(c.d))")
	f.Fuzz(func(t *testing.T, text string) {
		program, err := expression.Compile(text, expression.Bool, "object", "cluster", "self")
		if err == nil {
			variables := expression.Facts(nil)
			variables["object"] = map[string]any{}
			if _, err := program.Bool(variables); err != nil && !errors.Is(err, expression.ErrFailed) && !errors.Is(err, expression.ErrCost) {
				t.Errorf("%q gives %v", text, err)
			}
		}
	})
}
