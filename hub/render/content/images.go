// SPDX-License-Identifier: Apache-2.0

package content

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kumodo.io/convoy/hub/render/facts"
)

// pin puts the digest to each image of a container that has none, and says which
// digests it lacks.
func (r *renderer) pin() error {
	lacks := map[string]bool{}
	for i := range r.set.Objects {
		r.pinIn(r.set.Objects[i].Content, lacks)
	}
	if len(lacks) == 0 {
		return nil
	}
	if len(lacks) > maxImages {
		return fmt.Errorf("the render names %d images, at most %d can be pinned", len(lacks), maxImages)
	}
	r.result.Needs.Images = slices.Sorted(maps.Keys(lacks))
	return ErrIncomplete
}

// pinIn looks for lists of containers, and for images that are volumes, wherever they
// stand: kinds that are not built in have pods in them too.
func (r *renderer) pinIn(value any, lacks map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
			items, ok := v[list].([]any)
			if !ok {
				continue
			}
			for _, item := range items {
				if container, ok := item.(map[string]any); ok {
					r.pinAt(container, "image", lacks)
				}
			}
		}
		if items, ok := v["volumes"].([]any); ok {
			for _, item := range items {
				volume, ok := item.(map[string]any)
				if !ok {
					continue
				}
				if image, ok := volume["image"].(map[string]any); ok {
					r.pinAt(image, "reference", lacks)
				}
			}
		}
		for _, child := range v {
			r.pinIn(child, lacks)
		}
	case []any:
		for _, child := range v {
			r.pinIn(child, lacks)
		}
	}
}

func (r *renderer) pinAt(holder map[string]any, field string, lacks map[string]bool) {
	reference, ok := holder[field].(string)
	if !ok || reference == "" || strings.Contains(reference, "@") {
		return
	}
	digest, known := r.facts.Read(facts.Image + reference)
	if !known {
		lacks[reference] = true
		return
	}
	holder[field] = reference + "@" + digest
}
