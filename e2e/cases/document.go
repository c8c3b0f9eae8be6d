// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kyaml "sigs.k8s.io/yaml"
)

// Document is one object as it is written in the case. The text is what goes into the
// repository: nothing is read and written again on the way.
type Document struct {
	Text string
	Line int
	root *yaml.Node
}

// value gives the node at a path of keys, nil when there is none, or no document.
func (d *Document) value(path ...string) *yaml.Node {
	if d == nil {
		return nil
	}
	node := d.root
	for _, key := range path {
		node = child(node, key)
	}
	return node
}

func child(node *yaml.Node, key string) *yaml.Node {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

func (d *Document) text(path ...string) string {
	if node := d.value(path...); node != nil && node.Kind == yaml.ScalarNode {
		return node.Value
	}
	return ""
}

// Kind of the object.
func (d *Document) Kind() string { return d.text("kind") }

// Name of the object.
func (d *Document) Name() string {
	if name := d.text("metadata", "name"); name != "" {
		return name
	}
	return d.text("name") // of a target, which is short
}

// Namespace that the object names itself.
func (d *Document) Namespace() string {
	if namespace := d.text("metadata", "namespace"); namespace != "" {
		return namespace
	}
	return d.text("namespace")
}

// gvk of the object; a target may leave the version out.
func (d *Document) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(d.text("apiVersion"), d.Kind())
}

// object decodes the document as an API server would.
func (d *Document) object() (*unstructured.Unstructured, error) {
	raw, err := kyaml.YAMLToJSON([]byte(d.Text))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", d.Kind(), d.Name(), err)
	}
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("%s %s: %w", d.Kind(), d.Name(), err)
	}
	return &u, nil
}

// same says whether two documents are one object; the version is no part of that.
func (d *Document) same(other *Document, namespace string) bool {
	in := func(d *Document) string {
		if ns := d.Namespace(); ns != "" {
			return ns
		}
		return namespace
	}
	return d.Kind() == other.Kind() && d.gvk().Group == other.gvk().Group && d.Name() == other.Name() && in(d) == in(other)
}

func (d *Document) String() string {
	if ns := d.Namespace(); ns != "" {
		return d.Kind() + " " + ns + "/" + d.Name()
	}
	return d.Kind() + " " + d.Name()
}

// file names the document's file in a repository: in order, and readable.
func (d *Document) file(i int) string {
	clean := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		default:
			return '-'
		}
	}
	name := strings.Map(clean, strings.ToLower(d.Kind()+"-"+d.Name()))
	return fmt.Sprintf("%s/%05d-%s.yaml", contentFolder, i, name[:min(len(name), maxName)])
}

// encode writes a node as YAML.
func encode(node *yaml.Node) string {
	raw, err := yaml.Marshal(node)
	if err != nil {
		return fmt.Sprintf("# cannot be written: %v\n", err)
	}
	return string(raw)
}

// asWritten is a copy whose keys stay what they are when it is read as YAML 1.1, in which
// words such as n, y and on are no texts unless they are quoted.
func asWritten(node *yaml.Node) *yaml.Node {
	out := copyNode(node)
	quoteKeys(out)
	return out
}

func quoteKeys(node *yaml.Node) {
	if node == nil {
		return
	}
	for i, c := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 && c.Kind == yaml.ScalarNode && c.Tag != "!!merge" {
			c.Tag, c.Style = "!!str", yaml.DoubleQuotedStyle
		}
		quoteKeys(c)
	}
}

// readValue reads what an event gives as YAML, with keys as they are written.
func readValue(text string) (any, error) {
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(text), &node); err != nil {
		return nil, err //nolint:wrapcheck // wrapped with the place
	}
	var value any
	if len(node.Content) == 0 {
		return value, nil
	}
	err := kyaml.Unmarshal([]byte(encode(asWritten(node.Content[0]))), &value)
	return value, err //nolint:wrapcheck // wrapped with the place
}

// copyNode copies deeply, without aliases' targets being shared.
func copyNode(node *yaml.Node) *yaml.Node {
	if node == nil {
		return nil
	}
	out := *node
	out.Content = make([]*yaml.Node, 0, len(node.Content))
	for _, c := range node.Content {
		out.Content = append(out.Content, copyNode(c))
	}
	return &out
}
