// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"kumodo.io/convoy/hub/render/files"
	"kumodo.io/convoy/hub/render/kustomize"
)

// failing are kustomizations that the library refuses over a value, VALUE, of a Secret.
var failing = []struct{ name, kustomization, secret, patch, place string }{
	{
		"a replacement with an index that there is not",
		"resources: [secret.yaml, cm.yaml]\nreplacements: [{source: {kind: Secret, name: s, fieldPath: stringData.pw, options: {delimiter: '~', index: 5}}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.a]}]}]\n",
		"stringData: {pw: VALUE}\n", "", "over/kustomization.yaml: replacements[0], over/secret.yaml",
	},
	{"a patch file with a list where a map has to be", "resources: [secret.yaml]\npatches: [{path: p.yaml}]\n", "stringData: {pw: other}\n", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: [VALUE]\n", "over/p.yaml"},
	{"an inline patch with a text where a map has to be", "resources: [secret.yaml]\npatches: [{patch: PATCH}]\n", "stringData: {pw: other}\n", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: VALUE\n", "over/kustomization.yaml: patches[0]"},
	{"an inline patch without a name", "resources: [secret.yaml]\npatches: [{patch: PATCH}]\n", "stringData: {pw: other}\n", "kind: Secret\nstringData: {pw: VALUE}\n", "over/kustomization.yaml: patches[0]"},
	{"an inline patch that is a list of texts", "resources: [secret.yaml]\npatches: [{patch: 'apiVersion: v1\n\n  kind: Secret\n\n  metadata: {name: s}'}, {patch: PATCH}]\n", "stringData: {pw: other}\n", "[VALUE]\n", "over/kustomization.yaml: patches[1]"},
	{"an inline patch that is nothing else", "resources: [secret.yaml]\npatches: [{patch: PATCH, target: {kind: Secret}}]\n", "stringData: {pw: other}\n", "VALUE\n", "over/kustomization.yaml: patches[0]"},
	{"a patch with a key that nobody meant", "resources: [secret.yaml]\npatches: [{patch: PATCH}]\n", "stringData: {pw: other}\n", "kind: Secret\nstringData: {VALUE}\n", "over/kustomization.yaml: patches[0]"},
	{"a patch with a value in a remark", "resources: [secret.yaml]\npatches: [{patch: PATCH}]\n", "stringData: {pw: other}\n", "kind: Secret\nstringData: {pw: other} # was BARE\n", "over/kustomization.yaml"},
	{"an operation that tests", "resources: [secret.yaml]\npatches: [{patch: PATCH, target: {kind: Secret}}]\n", "stringData: {pw: other}\n", "[{op: test, path: /stringData/pw, value: VALUE}]\n", ""},
	{"an operation without a name", "resources: [secret.yaml]\npatches: [{patch: PATCH, target: {kind: Secret}}]\n", "stringData: {pw: other}\n", "[{op: add, path: 7, value: VALUE}]\n", ""},
	{"an old patch", "resources: [secret.yaml]\npatchesStrategicMerge: [PATCH]\n", "stringData: {pw: other}\n", "kind: Secret\nstringData: {pw: VALUE}\n", ""},
	{"a generator's literal", "secretGenerator: [{name: s, literals: [PAIR]}]\npatches: [{patch: PATCH}]\n", "", "kind: Secret\ndata: {pw: VALUE}\n", "over/kustomization.yaml: patches[0]"},
	{"a field of the kustomization that has another type", "namePrefix: [VALUE]\n", "", "", ""},
	{"a generator that is a number", "secretGenerator: [{name: s, literals: VALUE}]\n", "", "", ""},
}

func TestWordsOfKustomizeHoldNoValueOfTheSourceInAnyForm(t *testing.T) {
	values := map[string]string{
		"3 bytes": "x7q", "a word": "hunter8hunter8", "several lines": "firstline1\nsecondline2\n  third: line3\n",
		"with signs": `p<a>s&s"w+o/r d'1é\end`, "a number as text": "48151623", "signs alone": `$!$!%%&/&/§§`,
		"base64": base64.StdEncoding.EncodeToString([]byte("hunter8hunter8")), "200 bytes": strings.Repeat("a1b2c3d4e5", 20),
		"200 bytes with blanks": strings.Repeat("a1b2 c3d4e ", 18), "a word of kustomize's": "trouble",
	}
	for _, test := range failing {
		for form, value := range values {
			t.Run(test.name+", "+form, func(t *testing.T) {
				notTold(t, test.kustomization, test.secret, test.patch, strconv.Quote(value), value, test.place)
			})
		}
		t.Run(test.name+", a number", func(t *testing.T) {
			notTold(t, test.kustomization, test.secret, test.patch, "48151623", "48151623", test.place)
		})
	}
}

// notTold builds a kustomization that cannot be, and looks for the value in the answer.
func notTold(t *testing.T, kustomization, secret, patch, quoted, value, place string) {
	t.Helper()
	patch = strings.ReplaceAll(patch, "BARE", strings.Join(strings.Fields(value), " "))
	patch = strings.ReplaceAll(patch, "VALUE", quoted)
	kustomization = strings.ReplaceAll(kustomization, "PATCH", strconv.Quote(patch))
	kustomization = strings.ReplaceAll(kustomization, "PAIR", strconv.Quote("pw="+value))
	kustomization = strings.ReplaceAll(kustomization, "VALUE", quoted)
	tree := files.New([]files.File{
		{Name: "over/kustomization.yaml", Data: []byte(kustomization)},
		{Name: "over/secret.yaml", Data: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n" + strings.ReplaceAll(secret, "VALUE", quoted))},
		{Name: "over/cm.yaml", Data: []byte(config + "data: {a: b}\n")},
		{Name: "over/p.yaml", Data: []byte(patch)},
	}, nil)
	_, err := build(t, tree, "over")
	if err == nil {
		t.Fatal("it is built")
	}
	text := err.Error()
	for _, word := range append(strings.Fields(value), value) {
		for _, form := range []string{word, fmt.Sprintf("%q", word), base64.StdEncoding.EncodeToString([]byte(word))} {
			if len(word) > 2 && strings.Contains(text, form) {
				t.Errorf("it repeats %s: %v", form, err)
			}
		}
	}
	if !strings.HasPrefix(text, "over") {
		t.Errorf("it names no file: %v", err)
	}
	if strings.Contains(text, "withheld") && !strings.Contains(text, place) {
		t.Errorf("it does not say where: %v", err)
	}
}

func TestWordsOfKustomizeAreToldWhereTheyNameFilesFieldsAndObjectsOnly(t *testing.T) {
	tests := []struct{ name, tree, want string }{
		{
			"a patch for an object that is not there", "-- over/kustomization.yaml --\nresources: [d.yaml]\npatches: [{path: p.yaml}]\n-- over/d.yaml --\n" + deployment("shop") + "-- over/p.yaml --\n" + deployment("store"),
			"no matches for Id Deployment.v1.apps/store.[noNs]",
		},
		{"an object twice", "-- over/kustomization.yaml --\nresources: [d.yaml, e.yaml]\n-- over/d.yaml --\n" + deployment("shop") + "-- over/e.yaml --\n" + deployment("shop"), "may not add resource with an already registered id: Deployment.v1.apps/shop.[noNs]"},
		{
			"a field that is not there", "-- over/kustomization.yaml --\nresources: [d.yaml]\nreplacements: [{source: {kind: Deployment, name: shop, fieldPath: spec.replica}, targets: [{select: {kind: Deployment}, fieldPaths: [spec.replicas]}]}]\n-- over/d.yaml --\n" + deployment("shop"),
			"spec.replica",
		},
		{"a field that kustomize does not have", "-- over/kustomization.yaml --\nresource: [a]\n", `unknown field "resource"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := build(t, tree(test.tree), "over")
			if !errors.Is(err, kustomize.ErrBuild) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func deployment(name string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + ", labels: {app: " + name + "}}\nspec:\n  replicas: 2\n  selector: {matchLabels: {app: " + name + "}}\n" +
		"  template: {metadata: {labels: {app: " + name + "}}, spec: {containers: [{name: web, image: 'example/shop:1', args: [--verbose]}]}}\n"
}

func TestEntriesThatAreNoNamesOfFilesAreNotRepeated(t *testing.T) {
	for name, text := range map[string]string{
		"a patch on one line":              "patchesStrategicMerge: ['stringData: hunter8hunter8']\n",
		"a patch where a path has to be":   "patches: [{path: '[\"hunter8hunter8\"]'}]\n",
		"a resource with a password in it": "resources: ['https://me:hunter8hunter8@example.test/x?ref=main']\n",
		"a transformer on one line":        "transformers: ['patch: hunter8hunter8']\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := build(t, tree("-- over/kustomization.yaml --\n"+text), "over")
			if err == nil || strings.Contains(err.Error(), "hunter") || !strings.HasPrefix(err.Error(), "over/kustomization.yaml: ") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestKU06AFileThatSharesAWordWithTheFaultIsNotBlamedForIt(t *testing.T) {
	const patch = `[{op: add, path: /spec/replicas, value: 2}]` // no JSON, whatever else it is
	_, err := build(t, tree("-- base/kustomization.yaml --\nresources: [crd.yaml, d.yaml]\n"+
		"-- base/crd.yaml --\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: mines.example.test}\nspec: {names: {kind: Mine}, versions: [{schema: {openAPIV3Schema: {type: object}}}]}\n"+
		"-- base/d.yaml --\n"+deployment("shop")+
		"-- over/kustomization.yaml --\nresources: [../base]\npatchesJson6902:\n- target: {group: apps, version: v1, kind: Deployment, name: shop}\n  patch: '"+patch+"'\n"), "over")
	if err == nil || !strings.Contains(err.Error(), "over/kustomization.yaml: patchesJson6902[0]") || strings.Contains(err.Error(), "base/") {
		t.Errorf("got %v", err)
	}
}
