// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/pkg/manifest"
)

func TestDocumentsStandAlone(t *testing.T) {
	tests := []struct {
		name, file, text string
		want             []string
	}{
		{"one document is as written", "a.yaml", "a: 1 # note\n", []string{"a: 1 # note\n"}},
		{"separators and empty documents are gone", "a.yaml", "---\na: 1\n---\n---\n# none\n---\nb: 2\n", []string{"\na: 1\n", "\nb: 2\n"}},
		{"YA-04: text on a separator's line is kept", "a.yaml", "--- {a: 1}\n...\n--- # note\nb: 2\n", []string{"{a: 1}\n", "# note\nb: 2\n"}},
		{"YA-04: blanks on a separator's line are gone", "a.yaml", "---\t \na: 1\n", []string{"\na: 1\n"}},
		{"YA-04: directives are gone", "a.yaml", "%YAML 1.1\n---\na: 1\n", []string{"\na: 1\n"}},
		{"YA-04: each JSON value is a document", "a.json", "{\"b\": 1.50, \"a\": 2}\n{\"c\": 3}\n", []string{"{\"a\":2,\"b\":1.50}\n", "{\"c\":3}\n"}},
		{"YA-02: marks and line ends are gone", "a.yaml", "\uFEFFa: 1\r\nb: 2\r\n", []string{"a: 1\nb: 2\n"}},
		{"a list is a document too", "patch.yaml", "- op: remove\n", []string{"- op: remove\n"}},
		{"nothing is nothing", "a.yaml", "# only a note\n", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			documents, err := manifest.Documents(test.file, []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range documents {
				got = append(got, string(d.Text))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestYA05DocumentsThatHarmAParserAreRefused(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"an alias bomb", string(caseFiles(t, "YA-05", "v3")["app/bomb.yaml"]), "document 1, line 1: ConfigMap bomb: too large: aliases add too much"},
		{"a document that contains itself", string(caseFiles(t, "YA-05", "v4")["app/self.yaml"]), "a.yaml, document 1, line 3: ConfigMap self: a value that contains itself"},
		{"one that nests too deep", strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "nested deeper than"},
		{"100,000 brackets", strings.Repeat("[", 100_000), "exceeded max depth"},
		{"an alias of another document", "a: &x 1\n---\nb: *x\n", "a.yaml, document 2, line 3: not valid YAML: unknown anchor"},
		{"no YAML", "a: b: c\n", "a.yaml, document 1, line 1: not valid YAML"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := manifest.Documents("a.yaml", []byte(test.text))
			wantError(t, err, test.want)
		})
	}
}
