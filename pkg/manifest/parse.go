// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"path"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var (
	errNotObject = errors.New("is not a Kubernetes object: a map with apiVersion, kind and metadata is needed")
	errMany      = errors.New("more faults follow in this file")
)

// IsManifest reports whether a file of a source is read as manifests, by the
// ending of its name.
func IsManifest(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	default:
		return false
	}
}

// Parse reads the YAML or JSON documents of one file. Lists are flattened, empty
// documents and those of comments only are skipped. The objects are normalised:
// stringData is folded into data, and what only a server writes (status, uid,
// resourceVersion, managedFields and the like) is dropped.
//
// All documents are looked at: the error, an Errors, has one *Error for each
// fault with its file, document and line.
func Parse(file string, data []byte) ([]Object, error) {
	chunks, err := chunksOf(file, data)
	if err != nil {
		return nil, err
	}
	p := &fileParser{file: file, json: strings.EqualFold(path.Ext(file), ".json")}
	for _, c := range chunks {
		if len(p.faults) >= maxErrorsPerFile {
			p.faults = append(p.faults, &Error{Place: Place{File: file, Line: c.line}, Err: errMany})
			break
		}
		p.chunk(c)
	}
	if err := p.faults.orNil(); err != nil {
		return nil, err
	}
	return p.objects, nil
}

type fileParser struct {
	file     string
	json     bool
	document int
	objects  []Object
	faults   Errors
}

// chunk reads what stands between two separators: one YAML document or any number
// of JSON values.
func (p *fileParser) chunk(c chunk) {
	body := bytes.TrimLeft(c.text, " \t\r\n")
	if p.json || bytes.HasPrefix(body, []byte("{")) {
		documents, syntax, err := parseJSON(c)
		if !syntax || p.json {
			for _, d := range documents {
				p.document++
				p.take(d.value, Place{File: p.file, Document: p.document, Line: d.line}, func(...string) int { return d.line })
			}
			if err != nil {
				p.document++
				p.fail(err, Place{File: p.file, Document: p.document, Line: c.line}, "")
			}
			return
		}
	}
	p.document++
	place := Place{File: p.file, Document: p.document, Line: c.line}
	node, err := parseNode(c)
	if err != nil {
		p.fail(err, place, "")
		return
	}
	if node == nil {
		return
	}
	place.Line = c.line + node.Line - 1
	convert := &converter{base: c.line - 1, open: map[*yaml.Node]bool{}}
	value, err := convert.value(node, 0)
	if err != nil {
		p.fail(err, place, nodeName(node))
		return
	}
	p.take(value, place, func(steps ...string) int { return c.line - 1 + nodeLine(node, steps) })
}

// take checks one document's value and adds its objects.
func (p *fileParser) take(value any, place Place, line func(...string) int) {
	if value == nil {
		return
	}
	content, ok := value.(map[string]any)
	if !ok {
		p.fail(errNotObject, place, "")
		return
	}
	p.flatten(content, place, line, nil)
}

// flatten adds an object, or the objects of a list.
func (p *fileParser) flatten(content map[string]any, place Place, line func(...string) int, steps []string) {
	if len(steps) > 0 {
		place.Line = line(steps...)
	}
	kind, _ := content["kind"].(string)
	items, listed := content["items"]
	if !listed && isEmptyList(content) {
		return
	}
	if !listed || !strings.HasSuffix(kind, "List") {
		object, faults := newObject(content, place, func(path ...string) int { return line(append(steps[:len(steps):len(steps)], path...)...) })
		if len(faults) > 0 {
			p.faults = append(p.faults, faults...)
			return
		}
		p.objects = append(p.objects, object)
		return
	}
	list, ok := items.([]any)
	if !ok && items != nil {
		p.fail(&fault{line: place.Line, path: "items", err: errors.New("must be a list")}, place, shown(kind))
		return
	}
	for i, item := range list {
		inner := append(steps[:len(steps):len(steps)], "items", strconv.Itoa(i))
		object, ok := item.(map[string]any)
		if !ok {
			p.fail(&fault{line: line(inner...), path: "items[" + strconv.Itoa(i) + "]", err: errNotObject}, place, shown(kind))
			continue
		}
		if _, has := object["kind"]; !has && kind != "List" {
			// Typed lists, as a server answers them, name the kind once.
			object["kind"] = strings.TrimSuffix(kind, "List")
			if _, has := object["apiVersion"]; !has {
				object["apiVersion"] = content["apiVersion"]
			}
		}
		p.flatten(object, place, line, inner)
	}
}

// isEmptyList says that a List without items is one of no objects, as a server reads it. A
// kind that only ends in List is not known to be one, and whoever wrote another field meant
// something by it.
func isEmptyList(content map[string]any) bool {
	if content["kind"] != "List" || content["apiVersion"] != "v1" {
		return false
	}
	for field := range content {
		if field != "apiVersion" && field != "kind" && field != "metadata" {
			return false
		}
	}
	meta, told := content["metadata"].(map[string]any)
	_, named := meta["name"]
	return content["metadata"] == nil || told && !named
}

// fail records a fault with the place it names, or else the given one.
func (p *fileParser) fail(err error, place Place, object string) {
	entry := &Error{Place: place, Object: object, Err: err}
	var f *fault
	if errors.As(err, &f) {
		entry.Err, entry.Path = f.err, f.path
		if f.line > 0 {
			entry.Line = f.line
		}
	}
	p.faults = append(p.faults, entry)
}

// nodeName names the object of a document that could not be converted, as far as
// its text says.
func nodeName(n *yaml.Node) string {
	kind, name := scalarAt(n, "kind"), scalarAt(childOf(n, "metadata"), "name")
	return strings.TrimSpace(shown(kind) + " " + shown(name))
}

func scalarAt(n *yaml.Node, key string) string {
	if child := childOf(n, key); child != nil && child.Kind == yaml.ScalarNode {
		return child.Value
	}
	return ""
}

func childOf(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// nodeLine finds the line of a field, or that of the nearest thing around it.
func nodeLine(n *yaml.Node, steps []string) int {
	line := n.Line
	for _, step := range steps {
		if n.Kind == yaml.AliasNode {
			return line
		}
		if n.Kind == yaml.SequenceNode {
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(n.Content) {
				return line
			}
			n = n.Content[i]
		} else if n = childOf(n, step); n == nil {
			return line
		}
		line = n.Line
	}
	return line
}
