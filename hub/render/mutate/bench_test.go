// SPDX-License-Identifier: Apache-2.0

package mutate_test

import (
	"fmt"
	"testing"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/render/mutate"
	"kumodo.io/convoy/pkg/manifest"
)

// BenchmarkApply1000 is one mutation of each form on 1,000 objects.
func BenchmarkApply1000(b *testing.B) {
	var objects []manifest.Object
	for i := range 1000 {
		found, err := manifest.Parse("a.yaml", fmt.Appendf(nil, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d-%d, labels: {app: web}}\nspec: {replicas: 2, template: {spec: {containers: [{name: c, image: x}]}}}\n", i))
		if err != nil {
			b.Fatal(err)
		}
		objects = append(objects, found...)
	}
	for _, one := range []mutate.Mutation{
		{Name: "merge", Type: v1alpha1.MutationMergePatch, Bodies: []string{"metadata: {labels: {a: b}}"}},
		{Name: "template", Type: v1alpha1.MutationGoTemplate, Bodies: []string{"metadata: {labels: {region: '{{ .cluster.region }}'}}"}},
		{Name: "template over the object", Type: v1alpha1.MutationGoTemplate, Bodies: []string{"spec: {replicas: '{{ add .object.spec.replicas 1 }}'}"}},
		{Name: "patch", Type: v1alpha1.MutationJSONPatch, Bodies: []string{"[{op: replace, path: /spec/replicas, value: 3}]"}},
		{Name: "condition over the object", If: "object.spec.replicas > 100", Type: v1alpha1.MutationMergePatch, Bodies: []string{"{}"}},
	} {
		b.Run(one.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				set := &manifest.Set{Objects: append([]manifest.Object(nil), objects...)}
				if err := mutate.Apply(set, []mutate.Mutation{one}, facts.NewRecorder(edge())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
