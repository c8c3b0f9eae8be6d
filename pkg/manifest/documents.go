// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document is the text of one document of a file.
type Document struct {
	// Text is UTF-8 without a mark, a separator or a directive, its lines ended by line
	// feeds. It parses as YAML by itself.
	Text []byte
	// Line of the file that it begins at, from 1.
	Line int
}

// Documents cuts a file into its documents as Parse does, and checks that each can
// be parsed by another parser without harm: it is YAML (or JSON), nests no deeper
// than MaxDepth, does not contain itself, and its aliases add little. What the
// documents say is not looked at. Each value of a stream of JSON values is a
// document. The error is an Errors, as that of Parse.
func Documents(file string, data []byte) ([]Document, error) {
	chunks, err := chunksOf(file, data)
	if err != nil {
		return nil, err
	}
	p := &fileParser{file: file}
	var documents []Document
	for _, c := range chunks {
		body := bytes.TrimLeft(c.text, " \t\r\n")
		if bytes.HasPrefix(body, []byte("{")) || strings.HasSuffix(file, ".json") {
			values, syntax, err := parseJSON(c)
			if err == nil && !syntax && len(values) > 1 {
				for _, value := range values {
					text, err := Append(nil, value.value)
					if err != nil {
						return nil, Errors{&Error{Place: Place{File: file, Line: value.line}, Err: err}}
					}
					documents = append(documents, Document{Text: append(text, '\n'), Line: value.line})
				}
				continue
			}
		}
		p.document++
		place := Place{File: file, Document: p.document, Line: c.line}
		node, err := parseNode(c)
		if err == nil && node != nil {
			err = (&harmless{base: c.line - 1, open: map[*yaml.Node]bool{}}).check(node, 0)
		}
		if err != nil {
			p.fail(err, place, nodeName(node))
			continue
		}
		if node == nil {
			continue
		}
		text := c.text
		if marker(text, "---") {
			text = bytes.TrimLeft(text[3:], " \t")
		}
		documents = append(documents, Document{Text: bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), Line: c.line})
	}
	return documents, p.faults.orNil()
}

// chunksOf decodes a file and cuts it.
func chunksOf(file string, data []byte) ([]chunk, error) {
	if len(data) > MaxFileBytes {
		return nil, Errors{&Error{Place: Place{File: file}, Err: fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(data), MaxFileBytes)}}
	}
	text, line, err := decodeText(bytes.Clone(data))
	if err != nil {
		return nil, Errors{&Error{Place: Place{File: file, Line: line}, Err: err}}
	}
	chunks, line, err := split(text)
	if err != nil {
		return nil, Errors{&Error{Place: Place{File: file, Line: line}, Err: err}}
	}
	return chunks, nil
}

// harmless walks a document as a parser would that follows its aliases.
type harmless struct {
	base    int
	open    map[*yaml.Node]bool
	inAlias int
	nodes   int
	bytes   int
}

func (h *harmless) check(n *yaml.Node, depth int) error {
	if depth > MaxDepth {
		return h.fault(n, errDepth)
	}
	if h.inAlias > 0 {
		h.nodes++
		h.bytes += len(n.Value)
		if h.nodes > maxAliasNodes || h.bytes > maxAliasBytes {
			return h.fault(n, errAliases)
		}
	}
	if n.Anchor != "" {
		h.open[n] = true
		defer delete(h.open, n)
	}
	if n.Kind == yaml.AliasNode {
		if h.open[n.Alias] {
			return h.fault(n, errSelf)
		}
		h.inAlias++
		defer func() { h.inAlias-- }()
		return h.check(n.Alias, depth+1)
	}
	for _, child := range n.Content {
		if err := h.check(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (h *harmless) fault(n *yaml.Node, err error) error {
	return &fault{line: h.base + n.Line, err: err}
}
