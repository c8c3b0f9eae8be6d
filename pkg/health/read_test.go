// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// read makes a live object of YAML, with the types that a watch gives.
func read(t testing.TB, text string) map[string]any {
	t.Helper()
	raw, err := yaml.ToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	var out map[string]any
	if err := utiljson.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return out
}

// step is a verdict that a file wants for an object.
type step struct {
	name   string
	expect string
	says   string // part of the message
	object string
}

// steps reads a file of pairs: a document with step, do: health and expect, then the
// object. Steps that do something else are left out.
func steps(t *testing.T, file string) []step {
	t.Helper()
	raw, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	var out []step
	var open *step
	for doc := range strings.SplitSeq(string(raw), "\n---") {
		if !strings.Contains("\n"+doc, "\nstep:") {
			if open != nil && strings.TrimSpace(doc) != "" {
				open.object = doc
				out = append(out, *open)
				open = nil
			}
			continue
		}
		head := read(t, doc)
		open = nil
		if head["do"] != "health" && head["do"] != nil {
			continue
		}
		open = &step{}
		open.name, _ = head["step"].(string)
		open.expect, _ = head["expect"].(string)
		open.says, _ = head["says"].(string)
		if open.name == "" || open.expect == "" {
			t.Fatalf("%s: a step without name or verdict:\n%s", file, doc)
		}
	}
	return out
}
