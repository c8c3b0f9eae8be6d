// SPDX-License-Identifier: Apache-2.0

package mutate_test

import (
	"testing"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/render/mutate"
	"kumodo.io/convoy/pkg/manifest"
)

// FuzzApply holds that no body and no condition panics or runs on for ever, and that
// what comes out can be stored.
func FuzzApply(f *testing.F) {
	for _, seed := range [][2]string{
		{"metadata: {labels: {a: '{{ .cluster.region }}'}}", "cluster.region == 'eu'"},
		{"a: '{{ range $i, $c := .object.spec.containers }}{{ $c.name | upper }}{{ end }}'", "has(object.spec)"},
		{"a: {{ if hasKey .cluster \"x\" }}{{ .cluster.x }}{{ else }}{{ printf \"%05d\" 3 }}{{ end }}", ""},
		{"- {op: add, path: /data/x, value: 1}\n- {op: move, from: /data/x, path: /data/y}", "object.kind in ['ConfigMap']"},
		{"metadata: {name: other, labels: null}", "self.labels.all(k, k != '')"},
		{"a: '{{ toYaml (dict \"a\" (list 1 2.5 true)) | nindent 2 }}{{ $x := split \",\" \"a,b\" }}{{ index $x 1 }}'", ""},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, body, condition string) {
		for _, kind := range []v1alpha1.MutationType{v1alpha1.MutationGoTemplate, v1alpha1.MutationJSONPatch, v1alpha1.MutationMergePatch} {
			set := parse(t, "a.yaml", deployment)
			if err := mutate.Apply(set, []mutate.Mutation{{Type: kind, If: condition, Bodies: []string{body}}}, facts.NewRecorder(edge())); err != nil {
				continue
			}
			for _, object := range set.Objects {
				if _, err := manifest.Append(nil, object.Content); err != nil {
					t.Fatalf("%s: %v", object.Identity, err)
				}
			}
		}
	})
}
