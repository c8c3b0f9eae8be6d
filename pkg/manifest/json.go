// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

var errNotJSON = errors.New("not valid JSON")

// jsonDocument is one value of a stream of JSON values.
type jsonDocument struct {
	value any
	line  int
}

// parseJSON reads all JSON values of a chunk. syntax is true when the text is
// not JSON at all, so that it may still be YAML.
func parseJSON(c chunk) (documents []jsonDocument, syntax bool, err error) {
	p := &jsonParser{text: c.text, line: c.line}
	p.decoder = json.NewDecoder(bytes.NewReader(c.text))
	p.decoder.UseNumber()
	for {
		token, err := p.decoder.Token()
		if errors.Is(err, io.EOF) {
			return documents, false, nil
		}
		if err != nil {
			return documents, true, p.fault(errNotJSON)
		}
		line := p.lineNow()
		value, err := p.value(token, 0)
		if err != nil {
			var broken *json.SyntaxError
			if errors.As(err, &broken) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
				return documents, true, p.fault(errNotJSON)
			}
			return documents, false, err
		}
		documents = append(documents, jsonDocument{value: value, line: line})
		if len(documents) > MaxDocuments {
			return documents, false, p.fault(fmt.Errorf("%w: more than %d documents", ErrTooLarge, MaxDocuments))
		}
	}
}

// jsonParser builds values from tokens, so that duplicate keys are seen and depth
// is bounded before anything is allocated for it.
type jsonParser struct {
	decoder *json.Decoder
	text    []byte
	counted int // bytes of text whose lines are counted
	line    int
	path    []string
}

// lineNow is the line of the token that was read last.
func (p *jsonParser) lineNow() int {
	if now := int(p.decoder.InputOffset()); now > p.counted {
		p.line += bytes.Count(p.text[p.counted:now], []byte{'\n'})
		p.counted = now
	}
	return p.line
}

func (p *jsonParser) fault(err error) error {
	return &fault{line: p.lineNow(), path: pathText(p.path), err: err}
}

func (p *jsonParser) value(token json.Token, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, p.fault(errDepth)
	}
	switch t := token.(type) {
	case json.Number:
		value, err := writtenNumber(string(t))
		if err != nil {
			return nil, p.fault(err)
		}
		return value, nil
	case json.Delim:
		if t == '[' {
			return p.array(depth)
		}
		return p.object(depth)
	default:
		return token, nil // string, bool, nil
	}
}

func (p *jsonParser) array(depth int) (any, error) {
	list := []any{}
	for p.decoder.More() {
		p.path = append(p.path, "["+strconv.Itoa(len(list))+"]")
		token, err := p.decoder.Token()
		if err != nil {
			return nil, err
		}
		value, err := p.value(token, depth+1)
		if err != nil {
			return nil, err
		}
		p.path = p.path[:len(p.path)-1]
		list = append(list, value)
	}
	_, err := p.decoder.Token()
	return list, err
}

func (p *jsonParser) object(depth int) (any, error) {
	result := map[string]any{}
	for p.decoder.More() {
		token, err := p.decoder.Token()
		if err != nil {
			return nil, err
		}
		key, ok := token.(string)
		if !ok {
			return nil, p.fault(errNotJSON)
		}
		p.path = append(p.path, key)
		if _, twice := result[key]; twice {
			return nil, p.fault(errDuplicate)
		}
		if token, err = p.decoder.Token(); err != nil {
			return nil, err
		}
		if result[key], err = p.value(token, depth+1); err != nil {
			return nil, err
		}
		p.path = p.path[:len(p.path)-1]
	}
	_, err := p.decoder.Token()
	return result, err
}
