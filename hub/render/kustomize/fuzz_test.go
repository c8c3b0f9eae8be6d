// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"kumodo.io/convoy/hub/render/files"
)

// FuzzBuild holds that no kustomization with a file beside it ends the process.
func FuzzBuild(f *testing.F) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		archive, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		var kustomization, resource []byte
		for _, file := range txtar.Parse(archive).Files {
			switch file.Name {
			case "app/kustomization.yaml":
				kustomization = file.Data
			case "app/all.yaml":
				resource = file.Data
			}
		}
		f.Add(kustomization, resource)
	}
	f.Fuzz(func(t *testing.T, kustomization, resource []byte) {
		source := files.New([]files.File{
			{Name: "app/kustomization.yaml", Data: kustomization}, {Name: "app/all.yaml", Data: resource},
			{Name: "base/kustomization.yaml", Data: []byte("resources: [cm.yaml]\n")}, {Name: "base/cm.yaml", Data: []byte(config)},
		}, nil)
		if _, err := build(t, source, "app"); err != nil && len(err.Error()) > 16<<10 {
			t.Fatalf("an error of %d bytes", len(err.Error()))
		}
	})
}
