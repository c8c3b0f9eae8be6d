// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"errors"
	"fmt"

	"kumodo.io/convoy/hub/render/facts"
)

// Fill makes a value of a text in YAML or JSON, a map, whose texts may be templates over
// cluster and self. There is no object to ask about. Errors name line and field.
func Fill(text string, f facts.Facts) (map[string]any, error) {
	if len(text) > maxBodyBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(text), maxBodyBytes)
	}
	made, err := newTemplateBody(text, &world{facts: f})
	if err != nil {
		return nil, placed(err)
	}
	value, err := made.run.fill(made.root)
	if err != nil {
		return nil, placed(err)
	}
	content, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%w: it must be a map", ErrBody)
	}
	return content, nil
}

// placed puts the field into the text of a fault.
func placed(err error) error {
	var inner *bodyError
	if errors.As(err, &inner) && inner.field != "" {
		return fmt.Errorf("%s: %w", inner.field, inner.err)
	}
	return err
}
