// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"fmt"
	"strings"
	"testing"

	"kumodo.io/convoy/hub/render/files"
	"kumodo.io/convoy/hub/render/kustomize"
)

// overlay is a base of n Deployments with an overlay that prefixes, labels and patches
// them.
func overlay(n int) *files.Tree {
	var list []files.File
	var names strings.Builder
	for i := range n {
		name := fmt.Sprintf("d%04d.yaml", i)
		fmt.Fprintf(&names, "- %s\n", name)
		list = append(list, files.File{Name: "base/" + name, Data: fmt.Appendf(nil, `apiVersion: apps/v1
kind: Deployment
metadata: {name: app-%04d, labels: {app: app-%04d}}
spec:
  replicas: 2
  selector: {matchLabels: {app: app-%04d}}
  template:
    metadata: {labels: {app: app-%04d}}
    spec:
      containers:
      - name: main
        image: example/app:1
        ports: [{containerPort: 8080}]
        resources: {requests: {cpu: 10m, memory: 32Mi}}
`, i, i, i, i)})
	}
	list = append(list,
		files.File{Name: "base/kustomization.yaml", Data: []byte("resources:\n" + names.String())},
		files.File{Name: "over/kustomization.yaml", Data: []byte(`namespace: prod
namePrefix: prod-
resources: [../base]
labels: [{pairs: {env: prod}}]
images: [{name: example/app, newTag: "2"}]
patches:
- target: {kind: Deployment}
  patch: |
    - {op: replace, path: /spec/replicas, value: 3}
`)})
	return files.New(list, nil)
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("objects=%d", n), func(b *testing.B) {
			source := overlay(n)
			b.ReportAllocs()
			for b.Loop() {
				list, err := kustomize.Render(kustomize.Options{Tree: source, Path: "over"})
				if err != nil || len(list) != n {
					b.Fatalf("%d objects, %v", len(list), err)
				}
			}
		})
	}
}
