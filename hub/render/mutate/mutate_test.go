// SPDX-License-Identifier: Apache-2.0

package mutate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/render/mutate"
	"kumodo.io/convoy/pkg/manifest"
)

func edge() *facts.World {
	return &facts.World{
		Cluster: map[string]string{"name": "region-1", "region": "eu-west", "size": "3", "odd": "a\"b - c: \nx", "topology.kubernetes.io/zone": "z1"},
		Self: facts.Self{
			Name: "shop", Namespace: "team", TargetNamespace: "shop-ns",
			Labels: map[string]string{"tier": "web"}, Annotations: map[string]string{"note": "n"},
		},
	}
}

func parse(t *testing.T, file, text string) *manifest.Set {
	t.Helper()
	objects, err := manifest.Parse(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &manifest.Set{Namespace: "team", Objects: objects}
}

// text is the canonical JSON of an object's content, by its name.
func text(t *testing.T, set *manifest.Set, name string) string {
	t.Helper()
	for _, object := range set.Objects {
		if object.Name == name {
			made, err := manifest.Append(nil, object.Content)
			if err != nil {
				t.Fatal(err)
			}
			return string(made)
		}
	}
	t.Fatalf("there is no %s", name)
	return ""
}

func template(name string, bodies ...string) mutate.Mutation {
	return mutate.Mutation{Name: name, Type: v1alpha1.MutationGoTemplate, Bodies: bodies}
}

func onKind(kind, body string) mutate.Mutation {
	m := template("", body)
	m.Target = &v1alpha1.MutationTarget{Kind: kind}
	return m
}

// caseData are the objects of a case's step v1.
func caseData(t *testing.T, id string) *manifest.Set {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("../../../e2e/testdata/cases", id+"-*.yaml"))
	if err != nil || len(found) != 1 {
		t.Fatalf("case %s: found %v, %v", id, found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Tree map[string]string `yaml:"tree"`
	}
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); document.Tree == nil; {
		if err := decoder.Decode(&document); err != nil {
			t.Fatal(err)
		}
	}
	return parse(t, "app/cm.yaml", document.Tree["app/cm.yaml"])
}

func TestMU01OnlyThePatchIsATemplate(t *testing.T) {
	before, set := caseData(t, "MU-01"), caseData(t, "MU-01")
	err := mutate.Apply(set, []mutate.Mutation{
		template("site", "metadata: {labels: {site: '{{ .cluster.name }}'}}"),
		template("odd", "metadata:\n  annotations:\n    odd: '{{ .cluster.odd }}'\n"),
	}, facts.NewRecorder(edge()))
	if err != nil {
		t.Fatal(err)
	}
	content := set.Objects[0].Content
	if diff := cmp.Diff(before.Objects[0].Content["data"], content["data"]); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	want := map[string]any{"name": "text", "namespace": "t-mu-01", "labels": map[string]any{"site": "region-1"}, "annotations": map[string]any{"odd": "a\"b - c: \nx"}}
	if diff := cmp.Diff(want, content["metadata"]); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if len(content) != len(before.Objects[0].Content) {
		t.Errorf("fields appeared: %v", content)
	}
}

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

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: app, namespace: team, labels: {app: web}}
spec:
  replicas: 2
  template:
    spec:
      containers:
      - {name: c, image: "example/app:1", args: [a, b]}
      - {name: d, image: "example/side:1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cm}
data: {k: v, "a/b": x}
`

func TestMutationsChangeWhatTheySay(t *testing.T) {
	tests := []struct {
		name      string
		mutations []mutate.Mutation
		object    string
		want      string // part of the object
		reads     []string
	}{
		{
			"a template takes a value of the cluster and asks for no other",
			[]mutate.Mutation{template("", "metadata: {labels: {region: '{{ .cluster.region }}'}}")},
			"cm", `"labels":{"region":"eu-west"}`, []string{"cluster.region"},
		},
		{
			"a template without quotes is read too",
			[]mutate.Mutation{template("", "metadata:\n  labels:\n    region: {{ .cluster.region }}-{{ .self.name }}\n")},
			"cm", `"labels":{"region":"eu-west-shop"}`, []string{"cluster.region", "self.name"},
		},
		{
			"a text that is one action has the type of its value",
			[]mutate.Mutation{onKind("Deployment", "spec: {replicas: '{{ .cluster.size | int }}', paused: '{{ eq .cluster.region \"eu-west\" }}', copy: '{{ .object.metadata.labels }}'}")},
			"app", `"copy":{"app":"web"},"paused":true,"replicas":3`, []string{"cluster.region", "cluster.size"},
		},
		{
			"a text with more than an action stays text",
			[]mutate.Mutation{onKind("Deployment", "spec: {note: 'n{{ .object.spec.replicas }}'}")},
			"app", `"note":"n2"`, nil,
		},
		{
			"null removes, lists are replaced, maps are merged",
			[]mutate.Mutation{template("", "metadata: {labels: null}\nspec: {template: {spec: {containers: [{name: only, image: x}], restartPolicy: Always}}}")},
			"app", `"metadata":{"name":"app","namespace":"team"},"spec":{"replicas":2,"template":{"spec":{"containers":[{"image":"x","name":"only"}],"restartPolicy":"Always"}}}`, nil,
		},
		{
			"bodies and mutations see what those before them did",
			[]mutate.Mutation{template("", "metadata: {labels: {a: one}}", "metadata: {labels: {b: '{{ .object.metadata.labels.a }}2'}}"), template("", "metadata: {labels: {c: '{{ .object.metadata.labels.b }}3'}}")},
			"cm", `"labels":{"a":"one","b":"one2","c":"one23"}`, nil,
		},
		{
			"a key that is no word goes by index",
			[]mutate.Mutation{template("", `metadata: {labels: {zone: '{{ index .cluster "topology.kubernetes.io/zone" }}'}}`)},
			"cm", `"labels":{"zone":"z1"}`, []string{"cluster.topology.kubernetes.io/zone"},
		},
		{
			"a key that may be missing is asked for first, and counts",
			[]mutate.Mutation{template("", `metadata: {labels: {zone: '{{ if hasKey .cluster "zone" }}{{ .cluster.zone }}{{ else }}none{{ end }}', other: '{{ getOr .cluster "other" "x" }}'}}`)},
			"cm", `"labels":{"other":"x","zone":"none"}`, []string{"cluster.other", "cluster.zone"},
		},
		{
			"what a branch does not reach is not asked for",
			[]mutate.Mutation{template("", `metadata: {labels: {r: '{{ if eq .self.name "shop" }}s{{ else }}{{ .cluster.region }}{{ end }}'}}`)},
			"cm", `"labels":{"r":"s"}`, []string{"self.name"},
		},
		{
			"a loop over all keys counts as all",
			[]mutate.Mutation{template("", `metadata: {annotations: {all: '{{ range $k, $v := all .self.labels }}{{ $k }}={{ $v }},{{ $.cluster.name }}{{ end }}'}}`)},
			"cm", `"annotations":{"all":"tier=web,region-1"}`, []string{"cluster.name", "self.labels.*"},
		},
		{
			"a condition over the cluster leaves objects out",
			[]mutate.Mutation{{If: "cluster.region.startsWith('us-')", Type: v1alpha1.MutationMergePatch, Bodies: []string{"data: {k: changed}"}}},
			"cm", `"data":{"a/b":"x","k":"v"}`, []string{"cluster.region"},
		},
		{
			"a condition over the object is asked of each",
			[]mutate.Mutation{{If: "object.kind == 'ConfigMap' && !has(object.spec)", Type: v1alpha1.MutationMergePatch, Bodies: []string{"data: {k: changed}"}}},
			"cm", `"k":"changed"`, nil,
		},
		{
			"a condition asks with has before it reads",
			[]mutate.Mutation{{If: "!has(cluster.zone) && self.labels.tier == 'web' && 'region' in cluster", Type: v1alpha1.MutationMergePatch, Bodies: []string{"data: {k: changed}"}, Target: &v1alpha1.MutationTarget{Kind: "ConfigMap"}}},
			"cm", `"k":"changed"`, []string{"cluster.region", "cluster.zone", "self.labels.tier"},
		},
		{
			"numbers of objects are numbers in conditions",
			[]mutate.Mutation{{If: "has(object.spec) && object.spec.replicas < 3", Type: v1alpha1.MutationMergePatch, Bodies: []string{"spec: {replicas: 3}"}}},
			"app", `"replicas":3`, nil,
		},
		{
			"a JSON patch adds, moves, tests and removes",
			[]mutate.Mutation{{Type: v1alpha1.MutationJSONPatch, Target: &v1alpha1.MutationTarget{Kind: "Deployment"}, Bodies: []string{`
- {op: test, path: /spec/replicas, value: 2}
- {op: replace, path: /spec/replicas, value: 1.50}
- {op: add, path: /spec/template/spec/containers/0/args/-, value: c}
- {op: remove, path: /spec/template/spec/containers/1}
- {op: move, from: /metadata/labels/app, path: /metadata/labels/a~1b}
`}}},
			"app", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"labels":{"a/b":"web"},"name":"app","namespace":"team"},"spec":{"replicas":1.50,"template":{"spec":{"containers":[{"args":["a","b","c"],"image":"example/app:1","name":"c"}]}}}}`, nil,
		},
		{
			"braces of a patch that is no goTemplate are data",
			[]mutate.Mutation{{Type: v1alpha1.MutationMergePatch, Bodies: []string{"metadata: {annotations: {t: '{{ .cluster.region }}'}}"}}},
			"cm", `"annotations":{"t":"{{ .cluster.region }}"}`, nil,
		},
		{
			"an object may be renamed",
			[]mutate.Mutation{{Target: &v1alpha1.MutationTarget{Name: "c?"}, Type: v1alpha1.MutationMergePatch, Bodies: []string{"metadata: {name: other, namespace: far}"}}},
			"other", `"name":"other","namespace":"far"`, nil,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			set, recorder := parse(t, "a.yaml", deployment), facts.NewRecorder(edge())
			if err := mutate.Apply(set, test.mutations, recorder); err != nil {
				t.Fatal(err)
			}
			if got := text(t, set, test.object); !strings.Contains(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if diff := cmp.Diff(test.reads, recorder.Reads()); diff != "" {
				t.Errorf("reads (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTargetsSelect(t *testing.T) {
	tests := []struct {
		name   string
		target v1alpha1.MutationTarget
		want   []string
	}{
		{"a kind", v1alpha1.MutationTarget{Kind: "ConfigMap"}, []string{"cm"}},
		{"a group", v1alpha1.MutationTarget{Group: "apps"}, []string{"app"}},
		{"a name with a wildcard", v1alpha1.MutationTarget{Name: "a*"}, []string{"app"}},
		{"a dot in a name is a dot", v1alpha1.MutationTarget{Name: "a.p"}, nil},
		{"a namespace as rendered", v1alpha1.MutationTarget{Namespace: "team"}, []string{"app"}},
		{"labels", v1alpha1.MutationTarget{LabelSelector: "app in (web),!x"}, []string{"app"}},
		{"all that is given has to hold", v1alpha1.MutationTarget{Kind: "ConfigMap", Name: "app"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			set := parse(t, "a.yaml", deployment)
			mutation := mutate.Mutation{Type: v1alpha1.MutationMergePatch, Target: &test.target, Bodies: []string{"metadata: {annotations: {met: 'yes'}}"}}
			if err := mutate.Apply(set, []mutate.Mutation{mutation}, facts.NewRecorder(edge())); err != nil {
				t.Fatal(err)
			}
			var met []string
			for _, object := range set.Objects {
				if strings.Contains(text(t, set, object.Name), `"met"`) {
					met = append(met, object.Name)
				}
			}
			if diff := cmp.Diff(test.want, met); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
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
