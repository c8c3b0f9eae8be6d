// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"kumodo.io/convoy/pkg/manifest"
)

// patchBody is a JSON patch (RFC 6902).
type patchBody struct {
	operations jsonpatch.Patch
	lines      []int
}

// operands are what each operation needs beside its path.
var operands = map[string]string{"add": "value", "replace": "value", "test": "value", "move": "from", "copy": "from", "remove": ""}

func newPatchBody(text string) (body, error) {
	value, err := manifest.ParseValue("body", []byte(text))
	if err != nil {
		return nil, err
	}
	list, ok := value.Content.([]any)
	if !ok {
		return nil, fmt.Errorf("%w: a JSON patch must be a list of operations", ErrBody)
	}
	b := &patchBody{}
	for i, item := range list {
		line := value.Line(fmt.Sprint(i))
		if err := operation(item); err != nil {
			return nil, &bodyError{line: line, err: err}
		}
		b.lines = append(b.lines, line)
	}
	encoded, err := manifest.Append(nil, list)
	if err != nil {
		return nil, err
	}
	if b.operations, err = jsonpatch.DecodePatch(encoded); err != nil {
		return nil, fmt.Errorf("%w: it is no JSON patch", ErrBody)
	}
	return b, nil
}

// operation checks one operation.
func operation(item any) error {
	fields, ok := item.(map[string]any)
	if !ok {
		return fmt.Errorf("%w: an operation must be a map with op and path", ErrBody)
	}
	op, _ := fields["op"].(string)
	operand, known := operands[op]
	if !known {
		return fmt.Errorf("%w: op %q is none of add, remove, replace, move, copy and test", ErrBody, shown(op))
	}
	if _, ok := fields["path"].(string); !ok {
		return fmt.Errorf("%w: op %s needs a path", ErrBody, op)
	}
	if _, there := fields[operand]; operand != "" && !there {
		return fmt.Errorf("%w: op %s needs %s", ErrBody, op, operand)
	}
	return nil
}

func (b *patchBody) change(s *subject) (map[string]any, error) {
	text, err := manifest.Append(nil, s.object.Content)
	if err != nil {
		return nil, err
	}
	options := jsonpatch.NewApplyOptions()
	options.AccumulatedCopySizeLimit = maxCopied
	options.SupportNegativeIndices = false // RFC 6902 has none
	for i := range b.operations {
		if text, err = b.operations[i:i+1].ApplyWithOptions(text, options); err != nil {
			return nil, &bodyError{line: b.lines[i], err: patchFault(b.operations[i], err)}
		}
		if len(text) > manifest.MaxLineBytes {
			return nil, &bodyError{line: b.lines[i], err: fmt.Errorf("%w: the object gets more than %d bytes", ErrTooLarge, manifest.MaxLineBytes)}
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var content map[string]any
	if err := decoder.Decode(&content); err != nil || content == nil {
		return nil, fmt.Errorf("%w: what is left is no object", ErrPatch)
	}
	return content, nil
}

// patchFault says which operation does not fit and how; the library's text, which may
// show a value, is left out.
func patchFault(operation jsonpatch.Operation, err error) error {
	where, pathErr := operation.Path()
	if pathErr != nil {
		return fmt.Errorf("%w: %s", ErrPatch, operation.Kind())
	}
	why := "the path does not fit the object"
	switch {
	case errors.Is(err, jsonpatch.ErrTestFailed):
		why = "the value is another"
	case errors.Is(err, jsonpatch.ErrMissing):
		why = "there is nothing at the path"
	case errors.Is(err, jsonpatch.ErrInvalidIndex):
		why = "the list has no such place"
	}
	return fmt.Errorf("%w: %s %s: %s", ErrPatch, operation.Kind(), shown(where), why)
}
