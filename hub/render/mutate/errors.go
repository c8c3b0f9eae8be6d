// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"errors"
	"fmt"
	"strings"

	"kumodo.io/convoy/pkg/manifest"
)

// Sentinels that callers test with errors.Is.
var (
	// ErrKey: a template or an expression asked for a key that is not there.
	ErrKey = errors.New("there is no such key")
	// ErrTemplate: a template that cannot be parsed or executed.
	ErrTemplate = errors.New("the template fails")
	// ErrExpression: an `if` that cannot be read or evaluated, or is no bool.
	ErrExpression = errors.New("the expression fails")
	// ErrBody: a body that is not what its type needs.
	ErrBody = errors.New("the body does not fit the type")
	// ErrPatch: a JSON patch that does not fit an object.
	ErrPatch = errors.New("the patch does not fit")
	// ErrIdentity: a mutation would make another object of one.
	ErrIdentity = errors.New("a mutation may not change apiVersion's group or kind")
	// ErrTarget: a target that cannot be read.
	ErrTarget = errors.New("the target cannot be read")
	// ErrTooLarge: a limit of limits.go.
	ErrTooLarge = errors.New("too large")
)

// Error is one fault of a mutation with its place. It repeats no value.
type Error struct {
	// Mutation by its name, or mutations[2].
	Mutation string
	// Object that it was applied to, nil if the fault is in the mutation itself.
	Object *manifest.Identity
	// Place of the object.
	Place manifest.Place
	// Body: which one, from 1; 0: none. Line in it, from 1; Field: as in spec.replicas.
	Body, Line int
	Field      string
	// Err is what is wrong.
	Err error
}

// Error names mutation, body, line, field and object.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "mutation %s", e.Mutation)
	switch {
	case e.Body > 0 && e.Line > 0:
		fmt.Fprintf(&b, ", body %d, line %d", e.Body, e.Line)
	case e.Body > 0:
		fmt.Fprintf(&b, ", body %d", e.Body)
	}
	if e.Field != "" {
		b.WriteString(", ")
		b.WriteString(e.Field)
	}
	if e.Object != nil {
		fmt.Fprintf(&b, ": on %s (%s)", e.Object, e.Place)
	}
	b.WriteString(": ")
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap gives what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// shown cuts a word to what a message may repeat.
func shown(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "..."
}
