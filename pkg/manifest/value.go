// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"

	"go.yaml.in/yaml/v3"
)

var errOneDocument = errors.New("must have exactly one document")

// Value is one document that need not be an object.
type Value struct {
	// Content: map[string]any, []any, string, bool, nil and json.Number.
	Content any
	node    *yaml.Node
	first   int
}

// ParseValue reads a text that has exactly one document, under the rules and limits
// of Parse. name stands for the file in errors, which are Errors as those of Parse.
func ParseValue(name string, data []byte) (*Value, error) {
	chunks, err := chunksOf(name, data)
	if err != nil {
		return nil, err
	}
	p := &fileParser{file: name}
	if len(chunks) != 1 {
		p.fail(errOneDocument, Place{File: name}, "")
		return nil, p.faults
	}
	c := chunks[0]
	if body := bytes.TrimLeft(c.text, " \t\r\n"); bytes.HasPrefix(body, []byte("{")) || bytes.HasPrefix(body, []byte("[")) {
		if documents, _, err := parseJSON(c); err == nil && len(documents) == 1 {
			return &Value{Content: documents[0].value, first: documents[0].line}, nil
		}
	}
	node, err := parseNode(c)
	if err == nil && node == nil {
		err = errOneDocument
	}
	var content any
	if err == nil {
		convert := &converter{base: c.line - 1, open: map[*yaml.Node]bool{}}
		content, err = convert.value(node, 0)
	}
	if err != nil {
		p.fail(err, Place{File: name, Line: c.line}, "")
		return nil, p.faults
	}
	return &Value{Content: content, node: node, first: c.line}, nil
}

// Line gives the line of a field, or that of the nearest thing around it. Steps are
// keys, and indexes as decimal text.
func (v *Value) Line(steps ...string) int {
	if v.node == nil {
		return v.first
	}
	return v.first - 1 + nodeLine(v.node, steps)
}

// FromContent checks and normalises the content of an object that was made or changed
// after Parse, as Parse does. It keeps content. The error is an Errors.
func FromContent(content map[string]any, place Place) (Object, error) {
	object, faults := newObject(content, place, func(...string) int { return place.Line })
	return object, faults.orNil()
}
