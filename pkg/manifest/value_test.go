// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/pkg/manifest"
)

func TestAValueIsOneDocumentOfAnyForm(t *testing.T) {
	tests := []struct {
		name, text string
		want       any
	}{
		{"a map", "# note\na: 1\nb: [x]\n", map[string]any{"a": json.Number("1"), "b": []any{"x"}}},
		{"a list", "- a\n- 1.50\n", []any{"a", json.Number("1.50")}},
		{"JSON", "[{\"a\": true}]", []any{map[string]any{"a": true}}},
		{"a word", "x\n", "x"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			value, err := manifest.ParseValue("mutation", []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, value.Content); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	value, err := manifest.ParseValue("m", []byte("---\na:\n  b:\n  - x\n  - y\n"))
	if err != nil || value.Line("a", "b", "1") != 5 || value.Line("c") != 2 {
		t.Errorf("lines %d and %d, %v", value.Line("a", "b", "1"), value.Line("c"), err)
	}
}

func TestAValueThatIsNoneIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"nothing":          {"# note\n", "m: must have exactly one document"},
		"two documents":    {"a: 1\n---\nb: 2\n", "m: must have exactly one document"},
		"the same key":     {"a:\n  b: 1\n  b: 2\n", "m, line 3: a.b: the key stands twice"},
		"no YAML":          {"a: b: c\n", "m, line 1: not valid YAML"},
		"an alias bomb":    {string(mergeBomb()), "m, line"},
		"a loop":           {"a: &a {b: *a}\n", "a value that contains itself"},
		"a bare template":  {"a: {{ .x }}\n", "m, line 1: a: a key must be text: quote it"},
		"a list of tricks": {"[[[[", "not valid YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := manifest.ParseValue("m", []byte(test.text))
			wantError(t, err, test.want)
		})
	}
}

func TestContentThatWasChangedIsCheckedAsWhatIsParsed(t *testing.T) {
	place := manifest.Place{File: "a.yaml", Document: 2, Line: 7}
	object, err := manifest.FromContent(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "uid": "x"}, "stringData": map[string]any{"p": "v"},
	}, place)
	if err != nil || object.Name != "s" || object.Place != place || canonical(t, object.Content) != `{"apiVersion":"v1","data":{"p":"dg=="},"kind":"Secret","metadata":{"name":"s"}}` {
		t.Errorf("%+v, %v", object, err)
	}
	_, err = manifest.FromContent(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "labels": map[string]any{"a": json.Number("1")}}}, place)
	wantError(t, err, "a.yaml, document 2, line 7: ConfigMap c: metadata.labels.a: must be text")
}
