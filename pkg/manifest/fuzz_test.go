// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"kumodo.io/convoy/pkg/manifest"
)

// FuzzParse holds that whatever is read comes out of the stored form as it went
// in, and that nothing panics.
func FuzzParse(f *testing.F) {
	for _, seed := range [][2]string{{"YA-01", "v1"}, {"YA-01", "v2"}, {"YA-02", "v1"}, {"YA-04", "v1"}, {"YA-05", "v1"}, {"YA-05", "v3"}} {
		for _, data := range caseFilesFor(f, seed[0], seed[1]) {
			f.Add(data)
		}
	}
	f.Add([]byte("{\"a\": [1, 2.50, {\"b\": null}]}"))
	f.Add([]byte("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {\"a/b~\": x}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, err := manifest.Parse("f.yaml", data)
		if err != nil {
			return
		}
		set := &manifest.Set{Objects: objects}
		want := map[string]string{}
		for _, object := range objects {
			text, err := manifest.Append(nil, object.Content)
			if err != nil {
				return
			}
			want[object.String()] = string(text)
		}
		var o, s bytes.Buffer
		summary, err := set.Write(&o, &s, []byte("key"), salt)
		if err != nil {
			return
		}
		var sealed io.Reader
		if summary.SealedLines > 0 {
			sealed = &s
		}
		reader, err := manifest.NewReader(&o, sealed)
		if err != nil {
			t.Fatal(err)
		}
		for {
			entry, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			object, err := entry.Object()
			if err != nil {
				t.Fatal(err)
			}
			text, err := manifest.Append(nil, object)
			if err != nil {
				t.Fatal(err)
			}
			if want[entry.String()] != string(text) {
				t.Fatalf("%s: wrote %s, read %s", entry.Identity, want[entry.String()], text)
			}
			delete(want, entry.String())
		}
		if len(want) > 0 {
			t.Fatalf("not read back: %v", want)
		}
	})
}

// FuzzReader holds that no bytes make a Reader panic or read on for ever.
func FuzzReader(f *testing.F) {
	f.Add([]byte("{\"format\":\"convoy.render/v1\",\"count\":1}\n{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"a\"}}\n"), []byte("{\"format\":\"convoy.sealed/v1\",\"salt\":\"AA==\"}\n{\"line\":1,\"values\":{\"/metadata/name\":\"x\"}}\n"))
	f.Fuzz(func(t *testing.T, objects, sealed []byte) {
		_, err := readAll(bytes.NewReader(objects), bytes.NewReader(sealed))
		if err == nil || errors.Is(err, io.EOF) {
			return
		}
		_, err = readAll(bytes.NewReader(objects), nil)
		if errors.Is(err, io.EOF) {
			t.Fatal("an error that looks like the end")
		}
	})
}

// FuzzDocuments holds that a file cut into documents says what the file says.
func FuzzDocuments(f *testing.F) {
	for _, seed := range [][2]string{{"YA-01", "v1"}, {"YA-02", "v1"}, {"YA-04", "v1"}, {"YA-05", "v1"}, {"YA-05", "v3"}} {
		for _, data := range caseFilesFor(f, seed[0], seed[1]) {
			f.Add(data)
		}
	}
	f.Add([]byte("kind: A\nblock: |\n  no end of line"))
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, err := manifest.Parse("f.yaml", data)
		documents, cutErr := manifest.Documents("f.yaml", data)
		if err != nil {
			return
		}
		if cutErr != nil {
			t.Fatalf("it can be parsed, and not be cut: %v", cutErr)
		}
		var joined bytes.Buffer
		for i, document := range documents {
			if i > 0 {
				joined.WriteString("\n")
			}
			joined.WriteString("---\n")
			joined.Write(document.Text) // whether the last ends with a line's end may say something
		}
		again, err := manifest.Parse("f.yaml", joined.Bytes())
		if err != nil {
			t.Fatalf("cut, it cannot be parsed: %v\n%q", err, joined.Bytes())
		}
		if len(again) != len(objects) {
			t.Fatalf("%d objects, cut %d", len(objects), len(again))
		}
		for i := range objects {
			a, errA := manifest.Append(nil, objects[i].Content)
			b, errB := manifest.Append(nil, again[i].Content)
			if errA != nil || errB != nil || string(a) != string(b) {
				t.Fatalf("%s, cut %s", a, b)
			}
		}
	})
}
