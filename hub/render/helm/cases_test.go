// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"kumodo.io/convoy/pkg/manifest"
)

// caseStep reads the tree and the values of one step of a case file.
func caseStep(t testing.TB, id, step string) (texts, map[string]any) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("../../../e2e/testdata/cases", id+"-*.yaml"))
	if err != nil || len(found) != 1 {
		t.Fatalf("case %s: %v, %v", id, found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var document struct {
			Step   string         `yaml:"step"`
			Tree   texts          `yaml:"tree"`
			Values map[string]any `yaml:"values"`
		}
		if err := decoder.Decode(&document); err != nil {
			t.Fatalf("case %s has no step %s: %v", id, step, err)
		}
		if document.Step == step {
			return document.Tree, document.Values
		}
	}
}

func TestHE01NumbersAreTheSameWhereverTheyAreWritten(t *testing.T) {
	bare, _ := caseStep(t, "HE-01", "a")
	numbers := bare["app/values.yaml"]
	inFile := texts{"app/values.yaml": "", "app/my.yaml": numbers, "app/Chart.yaml": bare["app/Chart.yaml"], "app/templates/cm.yaml": bare["app/templates/cm.yaml"]}
	var inline map[string]any
	if err := yaml.Unmarshal([]byte(numbers), &inline); err != nil {
		t.Fatal(err)
	}
	// What an API server stores is JSON, and readers of it make whole numbers of some.
	stored, err := json.Marshal(inline)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(stored))
	decoder.UseNumber()
	var kept map[string]any
	if err := decoder.Decode(&kept); err != nil {
		t.Fatal(err)
	}
	ways := map[string]rendered{
		"the chart's values":        render(t, bare),
		"a values file":             render(t, inFile, withFiles("my.yaml")),
		"inline, as YAML reads it":  render(t, inFile, withValues(inline)),
		"inline, as it was written": render(t, inFile, withValues(kept)),
	}
	want := map[string]string{
		"bare": "1e+06", "build": "2.0240131e+07", "fixed": "20240131", "long": "1234567890123", "kind": "float64", "same": "true",
		"half": "0.5", "whole": "2", "text": "0123", "exp": "12e3",
		"all": `{"build":20240131,"exp":"12e3","half":0.5,"long":1234567890123,"million":1000000,"port":8080,"text":"0123","whole":2}`,
	}
	for way, result := range ways {
		t.Run(way, func(t *testing.T) {
			for key, value := range want {
				if got := result.data(t, "numbers", key); got != value {
					t.Errorf("%s is %q, want %q", key, got, value)
				}
			}
			if diff := cmp.Diff(ways["the chart's values"].all(), result.all()); diff != "" {
				t.Errorf("it differs (-chart +got):\n%s", diff)
			}
		})
	}
}

func TestHE02ANullRemovesTheDefaultBelowIt(t *testing.T) {
	tree, values := caseStep(t, "HE-02", "v1")
	result := render(t, tree, withValues(values))
	for key, want := range map[string]string{"has": "false", "strategy": `{"type":"Recreate"}`, "resources": "null"} {
		if got := result.data(t, "parent", key); got != want {
			t.Errorf("parent %s is %q, want %q", key, got, want)
		}
	}
	// Helm reads YAML 1.1, where the key "on" is true, and so it prints it.
	for key, want := range map[string]string{"probe": `{"exec":{"command":["true"]}}`, "tls": `{"true":true}`} {
		if got := result.data(t, "child", key); got != want {
			t.Errorf("child %s is %q, want %q", key, got, want)
		}
	}
	// The same in a file is the same.
	text, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	tree["app/nulls.yaml"] = string(text)
	if diff := cmp.Diff(result.all(), render(t, tree, withFiles("nulls.yaml")).all()); diff != "" {
		t.Errorf("a values file differs (-inline +file):\n%s", diff)
	}
}

func TestHE04DocumentsAreThoseThatHelmSees(t *testing.T) {
	tree, _ := caseStep(t, "HE-04", "v1")
	result := render(t, tree)
	objects := result.objects(t)
	var names []string
	for name := range objects {
		names = append(names, name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"ConfigMap fifth", "ConfigMap fourth", "ConfigMap rulers", "ConfigMap second", "ConfigMap third"}, names); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	for key, want := range map[string]string{
		"quoted":      "a --- b",
		"script.sh":   "# --- part one ------------------------------\necho one\n---\n------\necho two\n",
		"nested.yaml": "---\na: 1\n---\nb: 2\n...\n",
	} {
		if got := result.data(t, "rulers", key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if got := result.data(t, "second", "k"); got != "---" {
		t.Errorf("second is %q", got)
	}
	if got := result.data(t, "fifth", "k"); got != "v" {
		t.Errorf("fifth is %q", got)
	}
}

func TestHE05WhatIsEmptyIsNoObjectAndNoError(t *testing.T) {
	tree, values := caseStep(t, "HE-05", "v1")
	result := render(t, tree, withValues(values))
	if objects := result.objects(t); len(objects) != 1 || objects["ConfigMap real"].Name == "" {
		t.Errorf("got %v", objects)
	}
	tree, values = caseStep(t, "HE-05", "v2")
	_, _, err := render(t, tree, withValues(values)).Objects()
	var faults manifest.Errors
	if !errors.As(err, &faults) || len(faults) != 3 {
		t.Fatalf("got %v", err)
	}
	for i, want := range []string{"kind: is missing", "metadata: is missing", "is not a Kubernetes object"} {
		if text := faults[i].Error(); !strings.Contains(text, want) || !strings.HasPrefix(text, "app/templates/half.yaml, document ") {
			t.Errorf("fault %d is %q, want %q", i+1, text, want)
		}
	}
}

func TestHE07HooksDefinitionsAndTestsHaveTheirPlaces(t *testing.T) {
	tree, values := caseStep(t, "HE-07", "v1")
	result := render(t, tree, withValues(values))
	crds, objects, err := result.Objects()
	if err != nil {
		t.Fatal(err)
	}
	type placed struct {
		Name, Hook, Policy string
		Wave               int32
	}
	var got []placed
	for _, object := range objects {
		annotations := annotationsOf(object)
		got = append(got, placed{object.Kind + " " + object.Name, annotations["convoy.kumodo.io/hook"], annotations["convoy.kumodo.io/hook-delete-policy"], object.Wave})
		if hook := annotations["convoy.kumodo.io/hook"]; hook != "" && annotations["helm.sh/hook"] == "" {
			t.Errorf("%s lost Helm's annotation", object.Name)
		}
	}
	want := []placed{
		{Name: "Hook uses-crd"},
		{Name: "ConfigMap main"},
		{"Job prepare", "PreSync", "BeforeHookCreation", -5},
		{"ServiceAccount prepare", "PreSync", "HookSucceeded", -10},
		{"ConfigMap welcome", "PostInstall", "BeforeHookCreation", 0},
		{"ConfigMap bye", "PostDelete", "BeforeHookCreation", 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(crds) != 1 {
		t.Fatalf("%d definitions", len(crds))
	}
	if annotations := annotationsOf(crds[0]); annotations["raw"] != "{{ .Release.Name }}" || annotations["helm.sh/resource-policy"] != "keep" {
		t.Errorf("the definition has %v", annotations)
	}
}

func annotationsOf(object manifest.Object) map[string]string {
	texts := map[string]string{}
	metadata, _ := object.Content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for key, value := range annotations {
		texts[key], _ = value.(string)
	}
	return texts
}
