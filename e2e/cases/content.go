// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// contentFolder is where renders lie in the repository.
const contentFolder = "app"

// drop names objects of the base that are left out.
type drop struct {
	line                         int
	group, kind, namespace, name string
	anyGroup                     bool // nobody says the group
}

// fill puts a text of a size at a path of a document.
type fill struct {
	line          int
	document      int // from 1
	path          string
	bytes, copies int64
}

// drops reads names of many forms: "name", "Kind name", "Kind/name",
// "Kind namespace/name", or a mapping with kind, namespace and name.
func (c *Case) drops(value *yaml.Node) ([]drop, error) {
	var out []drop
	for _, item := range list(value) {
		d := drop{line: item.Line, anyGroup: true}
		switch item.Kind {
		case yaml.MappingNode:
			doc := &Document{root: item}
			d.kind, d.namespace, d.name = doc.Kind(), doc.Namespace(), doc.Name()
			for _, key := range []string{"apiVersion", "group"} {
				if doc.value(key) != nil {
					d.group, d.anyGroup = doc.text(key), false
				}
			}
			if doc.value("group") == nil {
				d.group = doc.gvk().Group
			}
		case yaml.ScalarNode:
			parts := strings.FieldsFunc(item.Value, func(r rune) bool { return r == ' ' || r == '/' })
			switch len(parts) {
			case 1:
				d.name = parts[0]
			case 2:
				d.kind, d.name = parts[0], parts[1]
			case 3:
				d.kind, d.namespace, d.name = parts[0], parts[1], parts[2]
			}
		default:
		}
		if d.name == "" {
			return nil, c.broken(item.Line, "drop: %q names no object; write a name, or a kind and a name", strings.TrimSpace(encode(item)))
		}
		out = append(out, d)
	}
	return out, nil
}

func (d drop) meets(doc *Document) bool {
	group := doc.gvk().Group
	return d.name == doc.Name() && (d.anyGroup || d.group == group) &&
		(d.kind == "" || strings.EqualFold(d.kind, doc.Kind()) || strings.EqualFold(d.kind, doc.Kind()+"."+group)) &&
		(d.namespace == "" || d.namespace == doc.Namespace())
}

func (c *Case) fills(value *yaml.Node) ([]fill, error) {
	var out []fill
	for _, item := range list(value) {
		if item.Kind != yaml.MappingNode {
			return nil, c.broken(item.Line, "fill has to be like {document: 1, path: data.k, bytes: 1000}")
		}
		f := fill{line: item.Line, document: 1, copies: 1}
		for i := 0; i+1 < len(item.Content); i += 2 {
			key, content := item.Content[i].Value, item.Content[i+1]
			n, err := strconv.ParseInt(strings.ReplaceAll(content.Value, "_", ""), 10, 64)
			if key != "path" && err != nil {
				return nil, c.broken(content.Line, "fill: %s: %q is no number", key, content.Value)
			}
			switch key {
			case "document":
				f.document = int(n)
			case "path":
				f.path = content.Value
			case "bytes":
				f.bytes = n
			case "copies":
				f.copies = n
			default:
				return nil, c.broken(content.Line, "fill: %q is none of document, path, bytes, copies", key)
			}
		}
		if f.bytes < 0 || f.bytes > maxFill || f.copies < 1 || f.copies > maxCopies || f.path == "" && f.bytes > 0 {
			return nil, c.broken(item.Line, "fill needs a path, at most %d bytes and 1 to %d copies", maxFill, maxCopies)
		}
		out = append(out, f)
	}
	return out, nil
}

// render gives all documents of a render step: the base's, replaced, less those
// dropped, then the new ones.
func (c *Case) render(s *Step) ([]*Document, error) {
	own, err := c.filled(s)
	if err != nil {
		return nil, err
	}
	if s.Base == "" {
		return c.dropped(s, own)
	}
	out, err := c.render(c.find(s.Base))
	if err != nil {
		return nil, err
	}
	out = slices.Clone(out)
	for _, doc := range own {
		at := slices.IndexFunc(out, func(old *Document) bool { return old.same(doc, c.Namespace()) })
		if at >= 0 && doc.Name() != "" {
			out[at] = doc
		} else {
			out = append(out, doc)
		}
	}
	return c.dropped(s, out)
}

func (c *Case) dropped(s *Step, docs []*Document) ([]*Document, error) {
	for _, d := range s.Drop {
		left := slices.DeleteFunc(slices.Clone(docs), d.meets)
		if len(left) == len(docs) {
			return nil, c.broken(d.line, "step %s: drop: there is no %s", s.Name, strings.TrimSpace(d.kind+" "+d.name))
		}
		docs = left
	}
	return docs, nil
}

// manyDropped says which drops of a render step leave out more than one object.
func (c *Case) manyDropped(s *Step) (lines []string) {
	if s.Do != doRender || len(s.Drop) == 0 {
		return nil
	}
	whole := *s
	whole.Drop = nil
	docs, err := c.render(&whole)
	if err != nil {
		return nil // it was found when the case was read
	}
	for _, d := range s.Drop {
		var met []string
		for _, doc := range docs {
			if d.meets(doc) {
				met = append(met, doc.text("apiVersion")+" "+doc.String())
			}
		}
		if len(met) > 1 {
			lines = append(lines, fmt.Sprintf("drop %s leaves out %d objects: %s; with apiVersion or group beside kind and name it means one",
				strings.TrimSpace(d.kind+" "+d.name), len(met), strings.Join(met, ", ")))
		}
	}
	return lines
}

// filled gives a step's own documents with what fill says put in.
func (c *Case) filled(s *Step) ([]*Document, error) {
	groups := make([][]*Document, len(s.Docs))
	for i, doc := range s.Docs {
		groups[i] = []*Document{doc}
	}
	for _, f := range s.Fill {
		if f.document < 1 || f.document > len(s.Docs) {
			return nil, c.broken(f.line, "step %s: fill: there is no document %d of %d", s.Name, f.document, len(s.Docs))
		}
		var out []*Document
		for _, doc := range groups[f.document-1] {
			for n := int64(1); n <= f.copies; n++ {
				root := copyNode(doc.root)
				if f.copies > 1 {
					if err := put(root, "metadata.name", fmt.Sprintf("%s-%d", doc.Name(), n)); err != nil {
						return nil, c.broken(f.line, "step %s: fill: %w", s.Name, err)
					}
				}
				if f.path != "" {
					if err := put(root, f.path, filler(f.bytes, n)); err != nil {
						return nil, c.broken(f.line, "step %s: fill: %w", s.Name, err)
					}
				}
				out = append(out, &Document{Text: encode(root), Line: doc.Line, root: root})
			}
		}
		groups[f.document-1] = out
	}
	return slices.Concat(groups...), nil
}

var pathPart = regexp.MustCompile(`^([^.\[\]]*)((?:\[\d+\])*)$`)

// put sets the text at a path like spec.versions[0].schema; the last part may be new.
func put(root *yaml.Node, path, text string) error {
	node, value := root, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: yaml.DoubleQuotedStyle}
	parts := strings.Split(path, ".")
	for i, part := range parts {
		m := pathPart.FindStringSubmatch(part)
		if m == nil {
			return fmt.Errorf("path %q: %q cannot be read", path, part)
		}
		last := i == len(parts)-1 && m[2] == ""
		next := child(node, m[1])
		switch {
		case last && next != nil:
			*next = *value
			return nil
		case last && node.Kind == yaml.MappingNode:
			node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: m[1]}, value)
			return nil
		case next == nil:
			return fmt.Errorf("path %q: there is no %q", path, part)
		}
		node = next
		for _, index := range strings.FieldsFunc(m[2], func(r rune) bool { return r == '[' || r == ']' }) {
			n, err := strconv.Atoi(index)
			if err != nil || node.Kind != yaml.SequenceNode || n >= len(node.Content) {
				return fmt.Errorf("path %q: there is no item %s", path, index)
			}
			node = node.Content[n]
		}
	}
	*node = *value
	return nil
}

// filler is text of a length that does not compress to nothing, the same each time.
func filler(n, seed int64) string {
	var b strings.Builder
	b.Grow(int(n) + 16)
	for x := uint64(seed)*0x9E3779B97F4A7C15 + 1; int64(b.Len()) < n; {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b.WriteString(strconv.FormatUint(x, 36))
		b.WriteByte(' ')
	}
	return b.String()[:n]
}

// files gives a step's source tree and its links.
func (c *Case) files(s *Step) (files, links map[string]string, err error) {
	files, links = map[string]string{}, map[string]string{}
	if s.Do == doRender {
		docs, err := c.render(s)
		if err != nil {
			return nil, nil, err
		}
		for i, doc := range docs {
			files[doc.file(i+1)] = doc.Text
		}
		if len(docs) == 0 {
			files[contentFolder+"/.gitkeep"] = ""
		}
		return files, links, nil
	}
	if s.Base != "" {
		if files, links, err = c.files(c.find(s.Base)); err != nil {
			return nil, nil, err
		}
	}
	for path, text := range s.Tree {
		files[path] = text
		delete(links, path)
	}
	for path, to := range s.Symlinks {
		links[path] = to
		delete(files, path)
	}
	for _, d := range s.Drop {
		_, file := files[d.path()]
		if _, link := links[d.path()]; !file && !link {
			return nil, nil, c.broken(d.line, "step %s: drop: there is no file %s", s.Name, d.path())
		}
		delete(files, d.path())
		delete(links, d.path())
	}
	return files, links, nil
}

// path of a drop that means a file.
func (d drop) path() string {
	var parts []string
	for _, part := range []string{d.kind, d.namespace, d.name} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}
