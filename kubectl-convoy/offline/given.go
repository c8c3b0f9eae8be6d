// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"encoding/base64"
	"fmt"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
)

// Given are the ConfigMaps and Secrets that stand in for those of the hub's host.
type Given struct {
	data map[string]map[string]string // kind/name -> key -> text
}

// NewGiven takes the ConfigMaps and Secrets of a namespace out of a set; one that names
// no namespace is of that one.
func NewGiven(set *manifest.Set, namespace string) (*Given, error) {
	g := &Given{data: map[string]map[string]string{}}
	if set == nil {
		return g, nil
	}
	for i := range set.Objects {
		object := &set.Objects[i]
		if object.Group != "" || object.Namespace != "" && object.Namespace != namespace || object.Kind != v1alpha1.ReferenceConfigMap && object.Kind != v1alpha1.ReferenceSecret {
			continue
		}
		values, _ := object.Content["data"].(map[string]any) // checked when it was parsed
		texts := make(map[string]string, len(values))
		for key, value := range values {
			text, _ := value.(string)
			if object.Kind == v1alpha1.ReferenceSecret {
				plain, err := base64.StdEncoding.DecodeString(text)
				if err != nil {
					return nil, fmt.Errorf("%s: data.%s: %w", object.Place, key, err)
				}
				text = string(plain)
			}
			texts[key] = text
		}
		g.data[object.Kind+"/"+object.Name] = texts
	}
	return g, nil
}

// text of one key.
func (g *Given) text(kind, name, key string) (string, error) {
	texts, there := g.data[kind+"/"+name]
	if !there {
		return "", fmt.Errorf("%s %s is %w", kind, name, ErrValues)
	}
	text, there := texts[key]
	if !there {
		return "", fmt.Errorf("%s %s has no key %s: it is %w", kind, name, key, ErrValues)
	}
	return text, nil
}
