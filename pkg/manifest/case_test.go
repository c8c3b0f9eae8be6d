// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"kumodo.io/convoy/pkg/manifest"
)

const casesDir = "../../e2e/testdata/cases"

// caseFiles reads the source tree of one step of a case.
func caseFiles(t *testing.T, id, step string) map[string][]byte { return caseFilesFor(t, id, step) }

func caseFilesFor(t testing.TB, id, step string) map[string][]byte {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(casesDir, id+"-*.yaml"))
	if err != nil || len(found) != 1 {
		t.Fatalf("case %s: found %v, %v", id, found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var document struct {
			Step       string            `yaml:"step"`
			Tree       map[string]string `yaml:"tree"`
			TreeBase64 map[string]string `yaml:"treeBase64"`
		}
		if err := decoder.Decode(&document); err != nil {
			t.Fatalf("case %s has no step %s: %v", id, step, err)
		}
		if document.Step != step {
			continue
		}
		files := map[string][]byte{}
		for name, text := range document.Tree {
			files[name] = []byte(text)
		}
		for name, text := range document.TreeBase64 {
			raw, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = raw
		}
		return files
	}
}

// caseRender reads the documents of a render step of a case.
func caseRender(t *testing.T, id, step string) []byte {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(casesDir, id+"-*.yaml"))
	if err != nil || len(found) != 1 {
		t.Fatalf("case %s: found %v, %v", id, found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	take := false
	for _, document := range strings.Split(string(data), "\n---\n") {
		if name, ok := strings.CutPrefix(document, "step: "); ok {
			name, _, _ = strings.Cut(name, "\n")
			take = name == step
			continue
		}
		if take {
			out = append(out, document)
		}
	}
	return []byte(strings.Join(out, "\n---\n") + "\n")
}

func TestYA01OctalsAndQuotedWordsAreWhatKubectlReads(t *testing.T) {
	objects, err := parseTree(caseFiles(t, "YA-01", "v1"))
	if err != nil {
		t.Fatal(err)
	}
	modes := objects["modes"].Content
	for i := range 3 {
		if got := at(t, modes, "spec", "template", "spec", "volumes", i, "configMap", "defaultMode"); got != json.Number("493") {
			t.Errorf("volume %d: defaultMode = %v, want 493", i, got)
		}
	}
	want := map[string]any{"a": "yes", "b": "on", "c": "0123", "d": "1e3", "e": "null", "f": "~", "g": "0x1F", "h": "12:34", "i": "1_000", "j": ".5", "k": "y", "l": "2024-01-31", "m": ""}
	if diff := cmp.Diff(want, at(t, modes, "metadata", "annotations")); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	args := []any{"yes", "no", "off", "0755", "1.0", "=", "- x", "{a}", "#no-comment", "true"}
	if diff := cmp.Diff(args, at(t, modes, "spec", "template", "spec", "containers", 0, "args")); diff != "" {
		t.Errorf("args (-want +got):\n%s", diff)
	}
}

func TestYA01UnquotedWordsAreRefusedWithFileObjectAndField(t *testing.T) {
	_, err := parseTree(caseFiles(t, "YA-01", "v2"))
	wantError(t, err,
		"app/bad1.yaml, document 1, line 4: ConfigMap t-ya-01/bad1: data.port: must be text",
		"data.on-off: must be text", "data.half: must be text",
		"app/bad2.yaml, document 1, line 3: ConfigMap t-ya-01/bad2: metadata.annotations.flag: must be text",
		"app/bad3.yaml, document 1, line 4: ConfigMap bad3: data.ON: a key must be text: quote it (without quotes this word is the boolean true)")
}

func TestYA02MarksAndLineEndsChangeNoData(t *testing.T) {
	objects, err := parseTree(caseFiles(t, "YA-02", "v1"))
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 4 {
		t.Errorf("got %d objects, want bom, bom2, crlf and text", len(objects))
	}
	if got := at(t, objects["crlf"].Content, "data", "block"); got != "one\ntwo\n" {
		t.Errorf("block = %q", got)
	}
	want := map[string]any{"k": "ß 日本 🚀 é", "nbsp": "a\u00a0b", "del": "a\tb"}
	if diff := cmp.Diff(want, at(t, objects["text"].Content, "data")); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

func TestYA02BrokenEncodingsAreRefusedByFileAndLine(t *testing.T) {
	files := caseFiles(t, "YA-02", "v2")
	objects, err := parseTree(files)
	wantError(t, err, "app/latin1.yaml, line 4: has bytes that are not UTF-8", "app/tab.yaml, document 1, line 4:", "app/control.yaml, line 4: has a control character (0x07)")
	if _, ok := objects["utf16"]; !ok {
		t.Error("the UTF-16 file was not read")
	}
}

func TestYA04NothingIsLostBetweenSeparators(t *testing.T) {
	files := caseFiles(t, "YA-04", "v1")
	objects, err := parseTree(files)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 9; i++ {
		if _, ok := objects[fmt.Sprintf("c%d", i)]; !ok {
			t.Errorf("c%d is missing", i)
		}
	}
	if got := at(t, objects["c7"].Content, "data", "text"); got != "---\nnot: a document\n" {
		t.Errorf("c7 text = %q", got)
	}
}

func TestYA05AnchorsAndMergeKeysWorkInsideADocument(t *testing.T) {
	objects, err := parseTree(caseFiles(t, "YA-05", "v1"))
	if err != nil {
		t.Fatal(err)
	}
	spec := at(t, objects["anchored"].Content, "spec", "template").(map[string]any)
	if diff := cmp.Diff(map[string]any{"app": "anchored", "tier": "two"}, at(t, spec, "metadata", "labels")); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	for _, i := range []int{0, 1} {
		if got := canonical(t, at(t, spec, "spec", "containers", i, "resources")); got != `{"requests":{"cpu":"10m"}}` {
			t.Errorf("container %d: resources = %s", i, got)
		}
	}
}

func TestYA05BombsAreRefusedQuicklyAndInLittleMemory(t *testing.T) {
	deep := func(open, close string) []byte {
		return []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: deep}\ndata: " + strings.Repeat(open, 100_000) + strings.Repeat(close, 100_000))
	}
	tests := []struct {
		name  string
		files map[string][]byte
		want  string
	}{
		{"an alias to another document's anchor", caseFiles(t, "YA-05", "v2"), "app/b.yaml, document 2, line 7: not valid YAML: unknown anchor: quote a text that begins with *"},
		{"an alias bomb", caseFiles(t, "YA-05", "v3"), "app/bomb.yaml, document 1, line 1: ConfigMap bomb: "},
		{"a document that contains itself", caseFiles(t, "YA-05", "v4"), "app/self.yaml, document 1, line 3: ConfigMap self: metadata.annotations: a value that contains itself"},
		{"100,000 brackets", map[string][]byte{"a.yaml": deep("[", "]")}, "a.yaml, document 1, line 4: not valid YAML: exceeded max depth"},
		{"100,000 braces", map[string][]byte{"a.yaml": deep("{a: ", "}")}, "a.yaml, document 1, line 4: not valid YAML: exceeded max depth"},
		{"100,000 brackets alone", map[string][]byte{"a.yaml": bytes.Repeat([]byte("["), 100_000)}, "exceeded max depth"},
		{"100,000 brackets of JSON", map[string][]byte{"a.json": append([]byte(`{"a":`), bytes.Repeat([]byte("["), 100_000)...)}, "a.json, document 1, line 1: a.[0].[0]"},
		{"2,000 brackets", map[string][]byte{"a.yaml": append(append([]byte("a: "), bytes.Repeat([]byte("["), 2000)...), bytes.Repeat([]byte("]"), 2000)...)}, "nested deeper than"},
		{"a bomb of one long text", map[string][]byte{"a.yaml": []byte("a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 1000) + "]\n")}, "aliases add too much"},
		{"a chain of merge keys", map[string][]byte{"a.yaml": mergeBomb()}, "a.yaml, document 1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := parseTree(test.files)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			wantError(t, err, strings.ReplaceAll(test.want, "a.[0].[0]", "a[0][0]"))
			if took > soon {
				t.Errorf("took %s", took)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 96<<20 {
				t.Errorf("allocated %d MiB", grown>>20)
			}
			if len(err.Error()) > 4096 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
}

func mergeBomb() []byte {
	var b strings.Builder
	b.WriteString("m0: &m0 {a0: x, b0: x}\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&b, "m%d: &m%d {<<: [*m%d, *m%d], a%d: x}\n", i, i, i-1, i-1, i)
	}
	return []byte(b.String())
}

func TestPR03ListsAreUnrolledBeforeAnythingElse(t *testing.T) {
	objects, err := manifest.Parse("app/list.yaml", caseRender(t, "PR-03", "v1"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range objects {
		names = append(names, object.Kind+" "+object.Name)
	}
	want := []string{"PersistentVolumeClaim plain", "PersistentVolumeClaim listed", "ConfigMap listed-nons", "ConfigMap nested", "ConfigMap stays"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestDR02StringDataIsFoldedAndWins(t *testing.T) {
	tests := []struct{ step, want string }{
		{"v1", `{"multi":"bGluZTEKbGluZTIK","token":"b2xkLXRva2Vu","user":"YWxpY2U="}`},
		{"v2", `{"multi":"bGluZTEKbGluZTIK","user":"YWxpY2U="}`},
		{"v3", `{"user":"Y2Fyb2w="}`},
	}
	for _, test := range tests {
		t.Run("step "+test.step, func(t *testing.T) {
			objects, err := manifest.Parse("s.yaml", caseRender(t, "DR-02", test.step))
			if err != nil || len(objects) != 1 {
				t.Fatalf("%d objects, %v", len(objects), err)
			}
			if got := canonical(t, objects[0].Content["data"]); got != test.want {
				t.Errorf("data = %s, want %s", got, test.want)
			}
			if _, left := objects[0].Content["stringData"]; left {
				t.Error("stringData is still there")
			}
		})
	}
}

func TestDR04WhatOnlyAServerWritesIsDropped(t *testing.T) {
	objects, err := manifest.Parse("s.yaml", caseRender(t, "DR-04", "v1"))
	if err != nil || len(objects) != 3 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	for _, object := range objects {
		text := canonical(t, object.Content)
		for _, word := range []string{"creationTimestamp", `"status"`, `"uid"`, "resourceVersion", `"generation"`, "managedFields", "selfLink"} {
			if strings.Contains(text, word) {
				t.Errorf("%s still has %s: %s", object.Identity, word, text)
			}
		}
	}
}

func TestYA07AListWithoutItemsIsNoObjects(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"apiVersion: v1\nkind: List\n", "apiVersion: v1\nkind: List\nitems: []\n", "apiVersion: v1\nkind: List\nitems: null\n",
		"apiVersion: v1\nkind: List\nmetadata: {resourceVersion: \"\"}\n", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List}]\n",
	} {
		objects, err := manifest.Parse("a.yaml", []byte(text))
		if err != nil || len(objects) != 0 {
			t.Errorf("%q gives %d objects, %v", text, len(objects), err)
		}
	}
	// What may be meant to be an object is refused, not dropped.
	for _, text := range []string{"apiVersion: v1\nkind: List\nmetadata: {name: a}\n", "apiVersion: example.test/v1\nkind: AllowList\n", "kind: List\n", "apiVersion: v1\nkind: List\nmetadata: a\n", "apiVersion: v1\nkind: List\nitem: [{}]\n"} {
		if objects, err := manifest.Parse("a.yaml", []byte(text)); err == nil && len(objects) == 0 {
			t.Errorf("%q is dropped in silence", text)
		}
	}
}

func TestGO03TheCaseOfAnEndingDoesNotMatter(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"a.yaml": true, "UP.YAML": true, "a.Yml": true, "a.JSON": true, "a.yaml.bak": false, "YAML": false} {
		if got := manifest.IsManifest(name); got != want {
			t.Errorf("%s is read: %t", name, got)
		}
	}
}
