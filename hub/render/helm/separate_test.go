// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"testing"
)

func TestDocumentsAreSeparatedWhereHelmSeparatesThem(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"one document", "a: 1\n", "a: 1\n"},
		{"one that ends without a newline", "a: 1", "a: 1\n"},
		{"two documents, the second in its line", "a: 1\n---\nb: 1\n", "a: 1\n---\nb: 1\n"},
		{"blank lines before a document keep its line", "\n\na: 1\n\n---\n\nb: 1\n", "---\n\na: 1\n---\n\n\nb: 1\n"},
		{"a separator that is glued to its document", "a: 1\n---b: 1\n", "a: 1\n---\nb: 1\n"},
		{"a separator that is glued at the start", "---a: 1\n", "a: 1\n"},
		{"a separator with a comment", "a: 1\n--- # b\nb: 1\n", "a: 1\n---\n# b\nb: 1\n"},
		{"dashes inside a line", "a: b --- c\n", "a: b --- c\n"},
		{"dashes that are indented", "a: |\n  ---\n  b\n", "a: |\n  ---\n  b\n"},
		{"six dashes", "a: 1\n------\nb: 1\n", "a: 1\n---\n---\nb: 1\n"},
		{"carriage returns", "a: 1\r\n---\r\nb: 1\r\n", "a: 1\n---\nb: 1\n"},
		{"a document of comments", "# a\n---\n# b\n", ""},
		{"an empty map, null and nothing", "{}\n---\nnull\n---\n~\n---\n\n---\n# c\n{}\n", ""},
		{"a map that is not empty", "{a: 1}\n", "{a: 1}\n"},
		{"no text", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := string(separate(test.text)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestPlacesOfWhatIsRandomAreReplacedWhereTheyStand(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"alone", "{{ now }}", "{{ fail }}"},
		{"in a pipe", "a {{ 5 | randAlpha | quote }} b {{- uuidv4 -}}", "a {{ 5 | fail | quote }} b {{- fail -}}"},
		{"in a block", "{{ with (now) }}{{ else with date \"x\" . }}{{ end }}{{ range $i := list (uuidv4) }}{{ end }}", "{{ with (fail) }}{{ else with fail \"x\" . }}{{ end }}{{ range $i := list (fail) }}{{ end }}"},
		{"in a definition and a call of one", "{{ define \"x\" }}{{ now }}{{ end }}{{ template \"x\" (now) }}", "{{ define \"x\" }}{{ fail }}{{ end }}{{ template \"x\" (fail) }}"},
		{"with a field of what comes", "é {{ (genCA \"a\" 1).Cert }}", "é {{ (fail \"a\" 1).Cert }}"},
		{"not as a field, a text or a variable", "{{ .Values.now }}{{ $now := 1 }}{{ \"now\" }} now", "{{ .Values.now }}{{ $now := 1 }}{{ \"now\" }} now"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			found, err := scanTemplate(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(bar([]byte(test.text), found.places)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
