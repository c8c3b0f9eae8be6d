// SPDX-License-Identifier: Apache-2.0

package mutate_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/render/mutate"
	"kumodo.io/convoy/pkg/manifest"
)

func TestMU01AnUnknownValueIsToldWithPatchObjectAndCluster(t *testing.T) {
	err := mutate.Apply(caseData(t, "MU-01"), []mutate.Mutation{template("site", "metadata:\n  labels:\n    site: '{{ .cluster.zone }}'\n")}, facts.NewRecorder(edge()))
	if !errors.Is(err, mutate.ErrKey) {
		t.Fatalf("got %v", err)
	}
	const want = `mutation "site", body 1, line 3, metadata.labels.site: on ConfigMap t-mu-01/text (app/cm.yaml, document 1, line 1): there is no such key: cluster.zone, on cluster region-1`
	if err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestFaultsNameMutationBodyLineAndObject(t *testing.T) {
	patch := func(body string) mutate.Mutation {
		return mutate.Mutation{Type: v1alpha1.MutationJSONPatch, Bodies: []string{body}, Target: &v1alpha1.MutationTarget{Kind: "ConfigMap"}}
	}
	merge := func(body string) mutate.Mutation {
		return mutate.Mutation{Type: v1alpha1.MutationMergePatch, Bodies: []string{body}}
	}
	tests := []struct {
		name     string
		mutation mutate.Mutation
		want     error
		text     string
	}{
		{"a template that is none", template("x", "a: 1\nb: '{{ .cluster. }}'"), mutate.ErrTemplate, `mutation "x", body 1, line 2, b: the template fails`},
		{"the second body", template("", "a: b", "b: '{{ nope }}'"), mutate.ErrTemplate, `mutation mutations[0], body 2, line 1, b: the template fails: text:1: function "nope" not defined`},
		{"a template as key", template("", "metadata:\n  labels:\n    '{{ .cluster.region }}': x"), mutate.ErrBody, "body 1, line 3, metadata.labels.{{ .cluster.region }}: the body does not fit the type: a key cannot be a template"},
		{"a template around lines", template("", "{{ if true }}\na: b\n{{ end }}\n"), mutate.ErrBody, "body 1, line 1: the body does not fit the type: not valid YAML: did not find expected <document start>; templates stand in values, in quotes"},
		{"a definition", template("", `a: '{{ define "x" }}{{ end }}'`), mutate.ErrTemplate, "define, block and template are not there"},
		{"the library's other functions", template("", `a: '{{ html "x" }}'`), mutate.ErrTemplate, `function "html" not defined`},
		{"the environment", template("", `a: '{{ env "HOME" }}'`), mutate.ErrTemplate, `function "env" not defined`},
		{"the time", template("", `a: '{{ now }}'`), mutate.ErrTemplate, `function "now" not defined`},
		{"a key of the object", template("", "a: '{{ .object.spec.none }}'"), mutate.ErrKey, "on apps/Deployment team/app (a.yaml, document 1, line 1): there is no such key: object.spec.none"},
		{"a key of self", template("", "a: '{{ .self.labels.none }}'"), mutate.ErrKey, "self.labels.none, on cluster region-1"},
		{"something else", template("", "a: '{{ .Values.x }}'"), mutate.ErrKey, "there is no such key: Values"},
		{"a field of a text", template("", "a: '{{ .cluster.region.x }}'"), mutate.ErrTemplate, "cluster.region is text and has no field x"},
		{"a list in a text", template("", "a: 'x{{ .object.metadata }}'"), mutate.ErrTemplate, "a map cannot be written into a text"},
		{"a template's own failure", template("", `a: '{{ fail "no such size" }}'`), mutate.ErrTemplate, "no such size"},
		{"a goTemplate that is a list", template("", "- a"), mutate.ErrBody, "must be a partial object"},
		{"a condition that is none", mutate.Mutation{Name: "c", If: "cluster.", Type: v1alpha1.MutationMergePatch, Bodies: []string{"{}"}}, mutate.ErrExpression, `mutation "c", if: the expression fails`},
		{"a condition that is a text", mutate.Mutation{If: "'x'", Type: v1alpha1.MutationMergePatch}, mutate.ErrExpression, "it gives string, not true or false"},
		{"a condition over a missing key", mutate.Mutation{If: "cluster.zone == 'a'", Type: v1alpha1.MutationMergePatch}, mutate.ErrExpression, "no such key: zone (not there on cluster region-1: cluster.zone)"},
		{"a condition over an unknown word", mutate.Mutation{If: "env.HOME == ''", Type: v1alpha1.MutationMergePatch}, mutate.ErrExpression, "undeclared reference to 'env'"},
		{"a label selector that is none", mutate.Mutation{Target: &v1alpha1.MutationTarget{LabelSelector: "a=="}, Type: "mergePatch"}, nil, ""},
		{"a broken label selector", mutate.Mutation{Target: &v1alpha1.MutationTarget{LabelSelector: "a in"}, Type: "mergePatch"}, mutate.ErrTarget, "labelSelector"},
		{"a patch that is a map", patch("op: add"), mutate.ErrBody, "must be a list of operations"},
		{"an operation that is none", patch("- {op: test, path: /data/k, value: v}\n- {op: set, path: /a, value: 1}"), mutate.ErrBody, `body 1, line 2: the body does not fit the type: op "set" is none of`},
		{"an operation without value", patch("- {op: add, path: /a}"), mutate.ErrBody, "op add needs value"},
		{"a test that fails", patch("- {op: test, path: /data/k, value: hidden}"), mutate.ErrPatch, "line 1: on ConfigMap cm (a.yaml, document 2, line 12): the patch does not fit: test /data/k: the value is another"},
		{"a path that is not there", patch("- {op: remove, path: /data/none}"), mutate.ErrPatch, "remove /data/none: there is nothing at the path"},
		{"a place before the list", patch("- {op: add, path: /spec/x/-1, value: 1}"), mutate.ErrPatch, "add /spec/x/-1"},
		{"a patch that takes all", patch("- {op: replace, path: '', value: []}"), mutate.ErrPatch, "what is left is no object"},
		{"a kind that changes", merge("kind: Other"), mutate.ErrIdentity, "on apps/Deployment team/app"},
		{"a group that changes", merge("apiVersion: other/v1"), mutate.ErrIdentity, "on apps/Deployment team/app"},
		{"a name that goes", merge("metadata: {name: null}"), nil, "makes an object whose metadata.name is missing"},
		{"a label that is no text", merge("metadata: {labels: {a: 1}}"), nil, "makes an object whose metadata.labels.a must be text"},
		{"a key that only convoy writes", merge("metadata: {labels: {convoy.kumodo.io/managed: x}}"), manifest.ErrOwnerKey, ""},
		{"two keys", merge("a: 1\na: 2"), nil, "mutation mutations[0], body 1, line 2, a: the key stands twice"},
		{"two documents", merge("a: 1\n---\nb: 2"), nil, "must have exactly one document"},
		{"a type that is none", mutate.Mutation{Type: "lua", Bodies: []string{"{}"}}, mutate.ErrBody, `"lua" is no type of mutation`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := mutate.Apply(parse(t, "a.yaml", deployment), []mutate.Mutation{test.mutation}, facts.NewRecorder(edge()))
			if test.want == nil && test.text == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got  %v\nwant %s", err, test.text)
			}
			var typed *mutate.Error
			if !errors.As(err, &typed) || typed.Mutation == "" {
				t.Errorf("no Error with a mutation: %#v", err)
			}
			if err != nil && strings.Contains(err.Error(), "hidden") {
				t.Errorf("a value shows: %v", err)
			}
		})
	}
}

func TestTwoObjectsMayNotBecomeOne(t *testing.T) {
	set := parse(t, "a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: team}\n")
	err := mutate.Apply(set, []mutate.Mutation{{Name: "same", Type: v1alpha1.MutationMergePatch, Bodies: []string{"metadata: {name: c}"}}}, facts.NewRecorder(edge()))
	if !errors.Is(err, manifest.ErrDuplicate) || !strings.Contains(err.Error(), `mutation "same": on ConfigMap team/c (a.yaml, document 2, line 5): the same object twice: also in a.yaml, document 1, line 1`) {
		t.Errorf("got %v", err)
	}
}

func TestAMutationOutOfASecretIsNotToldInFaults(t *testing.T) {
	for name, body := range map[string]string{
		"no template":     "a: '{{ hunter2 }}'",
		"a missing key":   "a: '{{ .cluster.hunter2 }}'",
		"a failure":       `a: '{{ fail "hunter2" }}'`,
		"no YAML":         "hunter2: [",
		"a key twice":     "hunter2: 1\nhunter2: 2",
		"no operation":    "- {op: hunter2}",
		"a label's fault": "metadata: {labels: {hunter2: 1}}",
	} {
		t.Run(name, func(t *testing.T) {
			kind := v1alpha1.MutationGoTemplate
			if strings.HasPrefix(body, "-") {
				kind = v1alpha1.MutationJSONPatch
			}
			err := mutate.Apply(parse(t, "a.yaml", deployment), []mutate.Mutation{{Name: "s", Type: kind, Bodies: []string{body}, Secret: true}}, facts.NewRecorder(edge()))
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestConditionsOverASecretSayNothingOfItsValues(t *testing.T) {
	set := parse(t, "a.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {pin: hunter2}\n")
	err := mutate.Apply(set, []mutate.Mutation{{If: "int(object.data.pin) > 3", Type: v1alpha1.MutationMergePatch}}, facts.NewRecorder(edge()))
	if !errors.Is(err, mutate.ErrExpression) || strings.Contains(err.Error(), "aHVudGVyMg") {
		t.Errorf("got %v", err)
	}
}

func TestFaultsOfMutationsOverASecretSayNothingOfItsValues(t *testing.T) {
	const text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: PlainGitSecret99}\n"
	tests := []struct {
		name string
		kind v1alpha1.MutationType
		body string
		want error
		says string
	}{
		{"fail with the value", v1alpha1.MutationGoTemplate, `metadata: {annotations: {a: "{{ fail .object.data.password }}"}}`, mutate.ErrTemplate, "body 1, line 1, metadata.annotations.a: on Secret s"},
		{"the value in clear as a key", v1alpha1.MutationGoTemplate, `metadata: {annotations: {a: "{{ index .object.data (b64dec .object.data.password) }}"}}`, mutate.ErrKey, "metadata.annotations.a"},
		{"the value as a key of the cluster", v1alpha1.MutationGoTemplate, `metadata: {annotations: {a: "{{ index .cluster (b64dec .object.data.password) }}"}}`, mutate.ErrKey, "metadata.annotations.a"},
		{"the value as a number", v1alpha1.MutationGoTemplate, `metadata: {annotations: {a: "{{ add 1 (b64dec .object.data.password) }}"}}`, mutate.ErrTemplate, "metadata.annotations.a"},
		{"the value as a pattern", v1alpha1.MutationGoTemplate, `metadata: {annotations: {a: '{{ regexReplaceAll (print "(" .object.data.password) "a" "b" }}'}}`, mutate.ErrTemplate, "metadata.annotations.a"},
		{"the value as a label's name", v1alpha1.MutationGoTemplate, `metadata: {labels: '{{ dict (b64dec .object.data.password) 1 }}'}`, mutate.ErrBody, "body 1: on Secret s"},
		{"a merge patch", v1alpha1.MutationMergePatch, "data: {password: [PlainGitSecret99]}", mutate.ErrBody, "body 1: on Secret s"},
		{"a JSON patch", v1alpha1.MutationJSONPatch, "[{op: test, path: /data/PlainGitSecret99, value: x}]", mutate.ErrPatch, "body 1, line 1: on Secret s"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := mutate.Apply(parse(t, "a.yaml", text), []mutate.Mutation{{Name: "m", Type: test.kind, Bodies: []string{test.body}}}, facts.NewRecorder(edge()))
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), `mutation "m"`) || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("got %v", err)
			}
			for _, value := range []string{"PlainGitSecret99", "UGxhaW5HaXRTZWNyZXQ5OQ"} {
				if strings.Contains(err.Error(), value) {
					t.Errorf("it repeats the value: %v", err)
				}
			}
		})
	}
}

func TestTemplatesAndConditionsEnd(t *testing.T) {
	doubling := func(step string) string {
		return `{{ $s := "xxxxxxxx" }}{{ range 64 }}{{ $s = ` + step + ` }}{{ end }}{{ len $s }}`
	}
	nested := `{{ $l := list "x" }}{{ range 64 }}{{ $l = list $l $l }}{{ end }}{{ toJson $l }}`
	tests := []struct{ name, text string }{
		{"a loop that writes nothing", "{{ range 1000000000 }}{{ end }}"},
		{"loops inside loops", "{{ range 1000 }}{{ range 1000 }}{{ range 1000 }}{{ end }}{{ end }}{{ end }}"},
		{"a loop that writes much", "{{ range 90000 }}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{{ end }}"},
		{"print that doubles", doubling("print $s $s")},
		{"printf that doubles", doubling(`printf "%s%s" $s $s`)},
		{"printf that is wide", `{{ printf "%100000d" 1 }}`},
		{"printf of a width that is given", `{{ printf "%*d" 1000000 1 }}`},
		{"replace that doubles", doubling(`replace "x" "xx" $s`)},
		{"a pattern that doubles", doubling(`regexReplaceAll "x" $s "xx"`)},
		{"repeat", `{{ repeat 2000000000 "x" }}`},
		{"indent", `{{ indent 2000000 "x" }}`},
		{"lists that hold each other", nested},
		{"lists that hold each other, as a value", `{{ $l := list "x" }}{{ range 64 }}{{ $l = list $l $l }}{{ end }}{{ $l }}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			body, err := json.Marshal(map[string]string{"a": test.text})
			if err != nil {
				t.Fatal(err)
			}
			err = mutate.Apply(parse(t, "a.yaml", deployment), []mutate.Mutation{template("", string(body))}, facts.NewRecorder(edge()))
			if err == nil || len(err.Error()) > 1000 {
				t.Errorf("got %v", err)
			}
		})
	}
	condition := "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f > 0))))))"
	err := mutate.Apply(parse(t, "a.yaml", deployment), []mutate.Mutation{{If: condition, Type: v1alpha1.MutationMergePatch}}, facts.NewRecorder(edge()))
	if !errors.Is(err, mutate.ErrExpression) || !strings.Contains(err.Error(), "it costs too much") {
		t.Errorf("a dear condition: %v", err)
	}
}
