// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"
	sigsyaml "sigs.k8s.io/yaml"

	"kumodo.io/convoy/pkg/manifest"
)

var update = flag.Bool("update", false, "write what the tests got into testdata")

// soon is a second on a machine that is loaded and runs the race detector. What takes
// exponential time does not end in it either.
const soon = 20 * time.Second

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

// parseTree parses all manifests of a tree and gives the objects by name.
func parseTree(files map[string][]byte) (map[string]manifest.Object, error) {
	objects := map[string]manifest.Object{}
	var faults []error
	for name, data := range files {
		if !manifest.IsManifest(name) {
			continue
		}
		found, err := manifest.Parse(name, data)
		if err != nil {
			faults = append(faults, err)
		}
		for _, object := range found {
			objects[object.Name] = object
		}
	}
	return objects, errors.Join(faults...)
}

func canonical(t *testing.T, value any) string {
	t.Helper()
	text, err := manifest.Append(nil, value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func at(t *testing.T, value any, steps ...any) any {
	t.Helper()
	for _, step := range steps {
		switch s := step.(type) {
		case string:
			value = value.(map[string]any)[s]
		case int:
			value = value.([]any)[s]
		}
	}
	return value
}

func wantError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error does not say %q: %v", text, err)
		}
	}
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

func TestKeysWithoutQuotesThatAreBooleansSayWhichOne(t *testing.T) {
	for word, want := range map[string]string{"y": "true", "Yes": "true", "on": "true", "n": "false", "NO": "false", "off": "false"} {
		_, err := manifest.Parse("a.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  "+word+": x\n"))
		wantError(t, err, "line 5: ConfigMap a: data."+word+": a key must be text: quote it (without quotes this word is the boolean "+want+")")
	}
}

func TestAnAliasOfNothingIsNotRepeated(t *testing.T) {
	_, err := manifest.Parse("a.yaml", []byte("a: 1\nb: *hunter2\n"))
	wantError(t, err, "a.yaml, document 1, line 2: not valid YAML: unknown anchor: quote")
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
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

func TestErrorsOfSecretsRepeatNoValue(t *testing.T) {
	_, err := manifest.Parse("s.yaml", []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {pin: 123456, ok: hunter2}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: t}\ndata: {p: '%hunter2%'}\n"))
	wantError(t, err, "stringData.pin: must be text", "data.p: is not base64")
	for _, value := range []string{"123456", "hunter2"} {
		if strings.Contains(err.Error(), value) {
			t.Errorf("the error repeats %q: %v", value, err)
		}
	}
}

// TestPlainScalarsAreThoseOfKubectl compares with the library that kubectl reads
// files by. The differences that are meant: numbers keep their text (compared as
// numbers here), and what kubectl cannot send is an error in both.
func TestPlainScalarsAreThoseOfKubectl(t *testing.T) {
	words := strings.Fields(`yes Yes YES no No NO on On ON off Off OFF y Y n N true True TRUE false tRUE ~ null Null NULL nil
		0755 0o755 -0o7 0x1F 0X1f -0x1 0b101 -0b11 08 09 019 1_000 1__0 _1 1_ 12:34 1:2:3 1e3 1E+3 1.5e-3 .5 -.5 +.5 5. +5 -5 -0 +0 0 00 1.0 -1.0 1.10
		2024-01-31 2024-1-1 2001-12-14t21:59:43.10-05:00 2024-01-31T00:00:00Z 12345678901234567890 123456789012345678901234567890 9223372036854775807 -9223372036854775808
		1.7976931348623157e308 1e400 .inf -.inf .nan .NaN NaN Infinity 0.1 100 1e-7 1e21 3.14159265358979323846 + - . .. -- 1.2.3 v1 1Gi 500m 0.5Gi = << <<x 1e 1e+ 0x 0o 0b 0o8 1,000 1/2 a:b`)
	for _, word := range words {
		if word == "-" || word == "--" {
			continue // a list item, not a word
		}
		t.Run(word, func(t *testing.T) {
			text := "apiVersion: v1\nkind: X\nmetadata: {name: x}\nv: " + word + "\n"
			ours, err := manifest.Parse("a.yaml", []byte(text))
			theirs, theirErr := sigsyaml.YAMLToJSON([]byte(text))
			if theirErr != nil {
				if err == nil {
					t.Fatalf("kubectl refuses it (%v), we read %v", theirErr, ours[0].Content["v"])
				}
				return
			}
			if err != nil {
				t.Fatalf("kubectl reads %s, we say %v", theirs, err)
			}
			var want, got map[string]any
			if err := json.Unmarshal(theirs, &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(canonical(t, ours[0].Content)), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want["v"], got["v"]); diff != "" {
				t.Errorf("(-kubectl +ours):\n%s", diff)
			}
		})
	}
}

// TestRenders runs the files of testdata: the files of an archive are the source,
// want.* the two layers, or the errors.
func TestRenders(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("found %v, %v", names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			set := &manifest.Set{Namespace: "team"}
			want := map[string]string{}
			var inputs []txtar.File
			var faults []string
			for _, file := range archive.Files {
				if strings.HasPrefix(file.Name, "want.") {
					want[file.Name] = string(file.Data)
					continue
				}
				inputs = append(inputs, file)
				objects, err := manifest.Parse(file.Name, file.Data)
				set.Objects = append(set.Objects, objects...)
				var list manifest.Errors
				if errors.As(err, &list) {
					for _, err := range list {
						faults = append(faults, err.Error())
					}
				}
			}
			got := map[string]string{}
			if len(faults) == 0 {
				var objects, sealed bytes.Buffer
				_, err := set.Write(&objects, &sealed, []byte("key"), bytes.Repeat([]byte{1}, 32))
				if err != nil {
					faults = append(faults, err.Error())
				} else {
					got["want.objects"] = objects.String()
				}
				if sealed.Len() > 0 {
					got["want.sealed"] = sealed.String()
				}
			}
			if len(faults) > 0 {
				got["want.errors"] = strings.Join(faults, "\n") + "\n"
			}
			if *update {
				archive.Files = inputs
				for _, file := range []string{"want.objects", "want.sealed", "want.errors"} {
					if got[file] != "" {
						archive.Files = append(archive.Files, txtar.File{Name: file, Data: []byte(got[file])})
					}
				}
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFileWithMillionsOfValuesIsRefusedBeforeItIsParsed(t *testing.T) {
	start := time.Now()
	_, err := manifest.Parse("app/x.yaml", []byte("["+strings.Repeat("a,", 8<<20)+"]"))
	wantError(t, err, "app/x.yaml, document 1, line 1: too large: more than 1000000 values in one document")
	if took := time.Since(start); took > soon {
		t.Errorf("took %s", took)
	}
}
