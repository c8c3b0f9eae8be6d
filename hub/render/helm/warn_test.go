// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"strings"
	"testing"
)

// TestHE10WhatIsRandomIsNamedByFunctionAndFile: a password that a chart makes is another
// one when any input changes, also where the chart asks lookup for the one that is there.
func TestHE10WhatIsRandomIsNamedByFunctionAndFile(t *testing.T) {
	t.Parallel()
	const helper = "{{ define \"password\" }}\n{{ randAlphaNum 10 }}{{ end }}"
	tests := []struct {
		name string
		tree texts
		says []string // none: no warning
		not  string
	}{
		{"nothing random", chart("x", ""), nil, ""},
		{"lookup alone", chart(`{{ lookup "v1" "Secret" "a" "b" | len }}`, ""), nil, ""},
		{"a random text", chart("a: b\nx: {{ randAlphaNum 5 | quote }}", ""), []string{"app/templates/a.yaml, line 2, calls randAlphaNum:", "change whenever an input", "valuesFrom"}, "lookup"},
		{"without arguments", chart("x: {{ uuidv4 }}", ""), []string{"app/templates/a.yaml, line 1, calls uuidv4:"}, ""},
		{"with too many", chart("x: {{ (genCA \"x\" 10).Cert | b64enc }}", ""), []string{"line 1, calls genCA:"}, ""},
		{"with a text", chart("x: {{ bcrypt \"x\" | quote }}", ""), []string{"line 1, calls bcrypt:"}, ""},
		{"two in a line", chart("x: {{ uuidv4 }}{{ randAlpha 4 }}", ""), []string{"line 1, calls randAlpha or uuidv4:"}, ""},
		{"one after another", chart("x: {{ bcrypt \"x\" | quote }}\ny: {{ uuidv4 }}\nz: {{ now | unixEpoch }}", ""), []string{"line 1, calls bcrypt (the templates name now or uuidv4, too):"}, ""},
		{"guarded by lookup", chart(`{{ $old := lookup "v1" "Secret" "a" "b" }}{{ if $old }}x: y{{ else }}x: {{ randAlphaNum 5 }}{{ end }}`, ""), []string{"calls randAlphaNum:", "lookup, which finds nothing here, does not keep"}, ""},
		{"in a helper", texts{"app/Chart.yaml": chartYAML, "app/templates/_h.tpl": helper, "app/templates/a.yaml": "x: {{ include \"password\" . }}"}, []string{"app/templates/_h.tpl, line 2, calls randAlphaNum:"}, ""},
		{"through tpl", chart("x: {{ tpl .Values.x . }}", "x: '{{ randAlphaNum 5 }}'"), []string{"a text that is given to tpl may ask"}, ""},
		{"the time", chart("x: {{ now | unixEpoch }}", ""), []string{"calls now:"}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(render(t, test.tree).Warnings, "\n")
			if (got == "") != (test.says == nil) {
				t.Errorf("warned of %q", got)
			}
			for _, want := range test.says {
				if !strings.Contains(got, want) {
					t.Errorf("warned of %q, want %q in it", got, want)
				}
			}
			if test.not != "" && strings.Contains(got, test.not) {
				t.Errorf("warned of %q, want no word of %s", got, test.not)
			}
			if len(got) > 512 {
				t.Errorf("the warning has %d bytes", len(got))
			}
		})
	}
}
