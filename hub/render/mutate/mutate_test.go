// SPDX-License-Identifier: Apache-2.0

package mutate_test

import (
	"bytes"
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
