// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/pkg/manifest"
)

var salt = bytes.Repeat([]byte{7}, 32)

func write(t *testing.T, text string) (objects, sealed string) {
	t.Helper()
	found, err := manifest.Parse("a.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	set := &manifest.Set{Namespace: "team", Objects: found}
	var o, s bytes.Buffer
	if _, err := set.Write(&o, &s, []byte("key"), salt); err != nil {
		t.Fatal(err)
	}
	return o.String(), s.String()
}

// readAll reads a whole render.
func readAll(objects, sealed io.Reader) ([]map[string]any, error) {
	reader, err := manifest.NewReader(objects, sealed)
	if err != nil {
		return nil, err
	}
	var all []map[string]any
	for {
		entry, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		object, err := entry.Object()
		if err != nil {
			return nil, err
		}
		all = append(all, object)
	}
}

const twoSecrets = `
apiVersion: v1
kind: Secret
metadata: {name: a}
data: {p: aHVudGVyMg==}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cm, annotations: {convoy.kumodo.io/sync-wave: "3"}}
data: {"n": "<sealed:not a mark>", "big": "5"}
---
apiVersion: v1
kind: Secret
metadata: {name: b}
data: {q: aHVudGVyMw==}
`

func TestAReaderPutsSealedValuesBack(t *testing.T) {
	text := twoSecrets
	objects, sealed := write(t, text)
	if strings.Contains(objects, "aHVudGVyMg") {
		t.Fatal("the objects layer has a Secret's value")
	}
	got, err := readAll(strings.NewReader(objects), strings.NewReader(sealed))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, object := range got {
		lines = append(lines, canonical(t, object))
	}
	want := []string{
		`{"apiVersion":"v1","data":{"p":"aHVudGVyMg=="},"kind":"Secret","metadata":{"name":"a"}}`,
		`{"apiVersion":"v1","data":{"q":"aHVudGVyMw=="},"kind":"Secret","metadata":{"name":"b"}}`,
		`{"apiVersion":"v1","data":{"big":"5","n":"<sealed:not a mark>"},"kind":"ConfigMap","metadata":{"annotations":{"convoy.kumodo.io/sync-wave":"3"},"name":"cm"}}`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnEntrySaysWhatTheEngineNeeds(t *testing.T) {
	objects, _ := write(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: ns, annotations: {convoy.kumodo.io/sync-wave: '-2'}}\n")
	reader, err := manifest.NewReader(strings.NewReader(objects), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(manifest.Header{Format: "convoy.render/v1", Count: 1, Waves: []int32{-2}, Namespace: "team"}, reader.Header()); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	entry, err := reader.Next()
	if err != nil {
		t.Fatal(err)
	}
	if entry.String() != "apps/Deployment ns/web" || entry.Version != "v1" || entry.Wave != -2 || entry.Line != 1 || len(entry.Digest) != 71 {
		t.Errorf("entry = %+v", entry)
	}
}

func TestAReaderRefusesWhatIsNotARender(t *testing.T) {
	objects, sealed := write(t, twoSecrets)
	lines := strings.SplitAfter(objects, "\n")
	sealedLines := strings.SplitAfter(sealed, "\n")
	long := `{"format":"convoy.render/v1","count":1,"waves":[0],"namespace":""}` + "\n" + `{"a":"` + strings.Repeat("x", manifest.MaxLineBytes) + `"}` + "\n"
	tests := []struct{ name, objects, sealed, want string }{
		{"nothing", "", "", "objects layer: not a render of a known format: empty"},
		{"another format", `{"format":"convoy.render/v9","count":0}` + "\n", "", "not that of convoy.render/v1"},
		{"no JSON", "hello\n", "", "not a render"},
		{"a missing object", strings.Join(lines[:3], ""), sealed, "2 objects, the header says 3"},
		{"an object too many", objects + lines[1], sealed, "line 4: not a render of a known format: more objects"},
		{"a cut line", objects[:len(objects)-5], sealed, "line 3: not a render of a known format: the last line is cut"},
		{"a cut last line feed", objects[:len(objects)-1], sealed, "line 3: not a render of a known format: the last line is cut"},
		{"a line that is no object", lines[0] + "5\n", sealed, "line 1: "},
		{"too many objects", `{"format":"convoy.render/v1","count":10001}` + "\n", "", "too large: 10001 objects"},
		{"a negative count", `{"format":"convoy.render/v1","count":-1}` + "\n", "", "too large"},
		{"a line too long", long, "", "line 1: too large"},
		{"a sealed layer of another format", objects, "{}\n", "sealed layer: "},
		{"sealed lines out of order", objects, sealedLines[0] + sealedLines[2] + sealedLines[1], "sealed layer: not a render of a known format: lines are not in order"},
		{"sealed values for a line without marks", objects, sealedLines[0] + strings.Replace(sealedLines[1], `"line":1`, `"line":3`, 1), "line 3: "},
		{"sealed values for no line", objects, sealed + `{"line":9,"values":{"/a":"b"}}` + "\n", "which does not exist"},
		{"a pointer into nothing", objects, sealedLines[0] + `{"line":1,"values":{"/data/zzz":"b"}}` + "\n", "line 1: not a render of a known format: a pointer leads to no text"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var sealedReader io.Reader
			if test.sealed != "" {
				sealedReader = strings.NewReader(test.sealed)
			}
			_, err := readAll(strings.NewReader(test.objects), sealedReader)
			wantError(t, err, test.want)
			if !errors.Is(err, manifest.ErrFormat) && !errors.Is(err, manifest.ErrTooLarge) {
				t.Errorf("not one of the sentinels: %v", err)
			}
		})
	}
}

func TestSealGivesTheSameBytesAsWrite(t *testing.T) {
	text := twoSecrets
	objects, sealed := write(t, text)
	found, err := manifest.Parse("a.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	set := &manifest.Set{Namespace: "team", Objects: found}
	var plain, o, s bytes.Buffer
	if _, err := set.WritePlain(&plain); err != nil {
		t.Fatal(err)
	}
	// A worker that does not say what to seal changes nothing for Secrets.
	silent := strings.NewReplacer(`["/data/p"]`, "", `["/data/q"]`, "").Replace(plain.String())
	for name, stream := range map[string]string{"as written": plain.String(), "without pointers": silent} {
		o.Reset()
		s.Reset()
		summary, err := manifest.Seal(strings.NewReader(stream), &o, &s, []byte("key"), salt)
		if err != nil {
			t.Fatal(err)
		}
		if o.String() != objects || s.String() != sealed || summary.SealedLines != 2 || summary.Count != 3 {
			t.Errorf("%s: other bytes, summary %+v:\n%s\n%s", name, summary, o.String(), s.String())
		}
	}
}

func TestSealSealsNamedValuesOfOtherKinds(t *testing.T) {
	stream := `{"format":"convoy.render/v1","count":1,"waves":[0],"namespace":"team"}` + "\n" +
		`["/spec/args/1"]` + "\t" + `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"args":["a","hunter2"]}}` + "\n"
	var o, s bytes.Buffer
	if _, err := manifest.Seal(strings.NewReader(stream), &o, &s, []byte("key"), salt); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(o.String(), "hunter2") || !strings.Contains(s.String(), `{"/spec/args/1":"hunter2"}`) {
		t.Errorf("objects %s\nsealed %s", o.String(), s.String())
	}
}

func TestSealRefusesAStreamThatLies(t *testing.T) {
	header := `{"format":"convoy.render/v1","count":1,"waves":[0],"namespace":""}` + "\n"
	for name, stream := range map[string]string{
		"no tab":          header + `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"p"}}` + "\n",
		"no JSON":         header + "\t{\n",
		"bad pointers":    header + "[1]\t" + `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}` + "\n",
		"a wrong pointer": header + `["/x/y"]` + "\t" + `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}` + "\n",
		"too few":         header,
		"too many":        header + strings.Repeat("\t"+`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`+"\n", 2),
		"nothing":         "",
	} {
		if _, err := manifest.Seal(strings.NewReader(stream), io.Discard, io.Discard, []byte("key"), salt); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestATooLargeObjectIsRefusedByName(t *testing.T) {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big}\ndata: {blob: \"" + strings.Repeat("x", manifest.MaxLineBytes) + "\"}\n"
	objects, err := manifest.Parse("app/big.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	set := &manifest.Set{Objects: objects}
	_, err = set.Write(io.Discard, io.Discard, []byte("key"), salt)
	wantError(t, err, "app/big.yaml", "ConfigMap big", "too large")
	if _, err := set.WritePlain(io.Discard); !errors.Is(err, manifest.ErrTooLarge) {
		t.Errorf("WritePlain: %v", err)
	}
	if len(err.Error()) > 300 {
		t.Errorf("the message has %d bytes", len(err.Error()))
	}
}

// The fills of the case: a ConfigMap of 900 KB, a CRD of 400 KB, 40 ConfigMaps of 100 KB.
func TestSS06LargeObjectsArriveByteForByte(t *testing.T) {
	var text strings.Builder
	config := func(name string, size int) {
		fmt.Fprintf(&text, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: t-ss-06}\ndata: {blob: \"%s\"}\n---\n", name, strings.Repeat("x", size))
	}
	config("big", 900_000)
	fmt.Fprintf(&text, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: wordies.ss06.example.test}\nspec: {versions: [{name: v1, schema: {openAPIV3Schema: {description: \"%s\"}}}]}\n---\n", strings.Repeat("x", 400_000))
	for i := range 40 {
		config(fmt.Sprintf("part-%d", i), 100_000)
	}
	objects, sealed := write(t, text.String())
	all, err := readAll(strings.NewReader(objects), nil)
	if err != nil || len(all) != 42 || sealed != "" {
		t.Fatalf("%d objects, %v", len(all), err)
	}
	for _, object := range all {
		metadata, _ := object["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		want := 100_000
		switch {
		case name == "big":
			want = 900_000
		case object["kind"] == "CustomResourceDefinition":
			continue
		}
		data, _ := object["data"].(map[string]any)
		if blob, _ := data["blob"].(string); len(blob) != want || len(metadata) != 2 {
			t.Errorf("%s has %d bytes, metadata %v", name, len(blob), metadata)
		}
	}
}

func TestTooManyObjectsAreRefused(t *testing.T) {
	set := &manifest.Set{}
	for i := range manifest.MaxObjects + 1 {
		set.Objects = append(set.Objects, manifest.Object{Identity: manifest.Identity{Kind: "ConfigMap", Name: fmt.Sprint(i)}})
	}
	if err := set.Arrange(); !errors.Is(err, manifest.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestTheSameContentInOtherFilesHasTheSameBytes(t *testing.T) {
	a, _ := write(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1', z: '2'}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n")
	b, _ := write(t, "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"b\",\"creationTimestamp\":null}}\n---\nkind: ConfigMap\napiVersion: v1\ndata:\n  z: \"2\"\n  x: \"1\"\nmetadata:\n  name: a\n")
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
}

func TestWaves(t *testing.T) {
	tests := []struct {
		name        string
		annotations map[string]string
		want        int32
		fails       bool
	}{
		{"none is 0", nil, 0, false},
		{"ours", map[string]string{"convoy.kumodo.io/sync-wave": "-5"}, -5, false},
		{"Argo CD's", map[string]string{"argocd.argoproj.io/sync-wave": "7"}, 7, false},
		{"ours before Argo CD's", map[string]string{"convoy.kumodo.io/sync-wave": "1", "argocd.argoproj.io/sync-wave": "7"}, 1, false},
		{"no number", map[string]string{"convoy.kumodo.io/sync-wave": "1.5"}, 0, true},
		{"too large", map[string]string{"convoy.kumodo.io/sync-wave": "4294967296"}, 0, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := manifest.Wave(test.annotations)
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
}
