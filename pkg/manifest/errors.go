// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinels that callers test with errors.Is.
var (
	// ErrFormat: a layer is not what this version writes.
	ErrFormat = errors.New("not a render of a known format")
	// ErrTooLarge: a limit of limits.go was passed.
	ErrTooLarge = errors.New("too large")
	// ErrDuplicate: two documents describe the same object.
	ErrDuplicate = errors.New("the same object twice")
	// ErrOwnerKey: an object carries a label or annotation that only the engine writes.
	ErrOwnerKey = errors.New("carries a key that only convoy writes")
	// ErrSealed: a value to seal stands in a field that must be readable.
	ErrSealed = errors.New("a value out of a Secret stands where an object is named or ordered")
)

// Place says where in a source something stands. Lines and documents count from 1.
type Place struct {
	File     string `json:"file"`
	Document int    `json:"document,omitempty"`
	Line     int    `json:"line,omitempty"`
}

// String gives "app/a.yaml, document 2, line 7".
func (p Place) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Document > 0 {
		fmt.Fprintf(&b, ", document %d", p.Document)
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, ", line %d", p.Line)
	}
	return b.String()
}

// Error is one fault of the input with its place. It never repeats a value.
type Error struct {
	Place
	// Object is "ConfigMap ns/name" as far as it is known.
	Object string
	// Path of the field, as in metadata.labels.app; may be empty.
	Path string
	// Err is what is wrong.
	Err error
}

// Error names place, object and field.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Place.String())
	for _, part := range []string{e.Object, e.Path} {
		if part != "" {
			b.WriteString(": ")
			b.WriteString(part)
		}
	}
	b.WriteString(": ")
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap gives what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Errors are all faults found in one go. Its text spells out the first ones.
type Errors []error

// Error joins the first faults and counts the rest.
func (e Errors) Error() string {
	shown := e
	if len(shown) > maxShownErrors {
		shown = shown[:maxShownErrors]
	}
	texts := make([]string, 0, len(shown)+1)
	for _, err := range shown {
		texts = append(texts, err.Error())
	}
	if more := len(e) - len(shown); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// Unwrap gives the faults to errors.Is and errors.As.
func (e Errors) Unwrap() []error { return e }

// orNil is nil for an empty list, so that a caller can return it as an error.
func (e Errors) orNil() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// shown cuts a word of the input to what a message may repeat.
func shown(s string) string {
	if len(s) <= maxShownText {
		return s
	}
	return strings.ToValidUTF8(s[:maxShownText], "") + "..."
}
