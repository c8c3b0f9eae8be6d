// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	sigsyaml "sigs.k8s.io/yaml"

	"kumodo.io/convoy/pkg/manifest"
)

var update = flag.Bool("update", false, "write what the tests got into testdata")

// soon is a second on a machine that is loaded and runs the race detector. What takes
// exponential time does not end in it either.
const soon = 20 * time.Second

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

func TestYA03BytesOfAConfigMapThatAreNoBase64AreNamed(t *testing.T) {
	_, err := manifest.Parse("a.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nbinaryData:\n  ok: aGVsbG8=\n  twice: !!binary aGVsbG8=\n  bad: 'not at all'\n"))
	wantError(t, err, "a.yaml, document 1, line 6: ConfigMap a: binaryData.twice: is not base64", "line 7: ConfigMap a: binaryData.bad: is not base64")
	if strings.Contains(err.Error(), "binaryData.ok") {
		t.Errorf("got %v", err)
	}
}
