// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/pkg/manifest"
)

// Formats of Print.
const (
	YAML  = "yaml"
	JSON  = "json"
	Names = "names"
)

// Check a format before work is done for it.
func Check(format string) error {
	switch format {
	case YAML, JSON, Names:
		return nil
	}
	return fmt.Errorf("%w, not %q", ErrFormat, format)
}

// Object is one object of a render.
type Object struct {
	manifest.Identity
	// Text is its JSON, masked.
	Text []byte
}

// Read takes the identity out of an object's JSON, and gives it one form: sorted keys,
// numbers as written.
func Read(text []byte) (Object, error) {
	value, err := decode(text, true)
	if err != nil {
		return Object{}, err
	}
	content, ok := value.(map[string]any)
	if !ok {
		return Object{}, fmt.Errorf("%w: it is no map", ErrObject)
	}
	apiVersion, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	metadata, _ := content["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	if kind == "" || name == "" {
		return Object{}, fmt.Errorf("%w: it has no kind or no name", ErrObject)
	}
	line, err := manifest.Append(nil, content)
	if err != nil {
		return Object{}, fmt.Errorf("%w: %w", ErrObject, err)
	}
	group, _ := manifest.GroupVersion(apiVersion)
	return Object{Identity: manifest.Identity{Group: group, Kind: kind, Namespace: namespace, Name: name}, Text: line}, nil
}

// Print writes the objects in their order.
func Print(w io.Writer, format string, list []Object) error {
	switch format {
	case YAML:
		for _, object := range list {
			text, err := yaml.JSONToYAML(object.Text)
			if err != nil {
				return fmt.Errorf("%s: %w: %w", object.Identity, ErrObject, err)
			}
			if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
				return err
			}
		}
	case JSON:
		return printJSON(w, list)
	case Names:
		for _, object := range list {
			if _, err := fmt.Fprintln(w, Name(object.Identity)); err != nil {
				return err
			}
		}
	default:
		return Check(format)
	}
	return nil
}

// printJSON writes one List, as kubectl does.
func printJSON(w io.Writer, list []Object) error {
	items := make([]json.RawMessage, 0, len(list))
	for _, object := range list {
		items = append(items, object.Text)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // marks are to be found again
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}{"v1", "List", items})
}

// Name is what kubectl get takes: deployment.apps/web -n shop.
func Name(id manifest.Identity) string {
	text := strings.ToLower(id.Kind)
	if id.Group != "" {
		text += "." + id.Group
	}
	text += "/" + id.Name
	if id.Namespace != "" {
		text += " -n " + id.Namespace
	}
	return text
}
