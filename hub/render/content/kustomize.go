// SPDX-License-Identifier: Apache-2.0

package content

import (
	"kumodo.io/convoy/hub/render/kustomize"
	"kumodo.io/convoy/pkg/manifest"
)

// kustomization builds a kustomization and reads what it gave.
func (r *renderer) kustomization(place string) error {
	r.begin(place)
	built, err := kustomize.Render(kustomize.Options{Tree: r.tree, Path: place, Copied: func(texts []string) {
		r.copies, r.copied = true, texts
	}})
	if err != nil {
		return err
	}
	r.set = &manifest.Set{}
	var all manifest.Errors
	for _, file := range built {
		all = join(all, r.add(manifest.Parse(file.Name, file.Data)))
	}
	if len(all) > 0 {
		return all
	}
	return nil
}
