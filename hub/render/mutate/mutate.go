// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"errors"
	"fmt"
	"strconv"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/pkg/manifest"
)

// Mutation is one of a Release, with its bodies at hand.
type Mutation struct {
	Name   string
	If     string
	Type   v1alpha1.MutationType
	Target *v1alpha1.MutationTarget
	// Bodies in order, YAML or JSON.
	Bodies []string
	// Secret: the bodies came out of a Secret, so that messages repeat nothing of them.
	Secret bool
}

// Apply changes the objects of a set, mutation by mutation, and in each body by body.
// The first fault ends it, and the set is then of no use: it is an *Error, or wraps
// manifest.ErrDuplicate in one when two objects have become the same.
//
// An object may get another name or namespace, and another version of its group; its
// kind and group stay.
func Apply(set *manifest.Set, mutations []Mutation, f facts.Facts) error {
	for i := range mutations {
		m, err := prepare(&mutations[i], i, f)
		if err != nil {
			return err
		}
		if err := m.apply(set); err != nil {
			return err
		}
	}
	return nil
}

// mutation is one that has been read: what there is to do with each object.
type mutation struct {
	name      string
	selects   func(*manifest.Object) bool
	condition *condition
	bodies    []body
	secret    bool
}

// body changes the content of an object.
type body interface {
	change(*subject) (map[string]any, error)
}

// prepare reads a mutation once, for all objects.
func prepare(spec *Mutation, index int, f facts.Facts) (*mutation, error) {
	m := &mutation{name: "mutations[" + strconv.Itoa(index) + "]", secret: spec.Secret}
	if spec.Name != "" {
		m.name = strconv.Quote(shown(spec.Name))
	}
	w := &world{facts: f}
	var err error
	if m.selects, err = target(spec.Target); err != nil {
		return nil, &Error{Mutation: m.name, Err: err}
	}
	if m.condition, err = newCondition(spec.If, w); err != nil {
		return nil, &Error{Mutation: m.name, Field: "if", Err: err}
	}
	for i, text := range spec.Bodies {
		b, err := read(spec.Type, text, w)
		if err != nil {
			return nil, m.bodyFault(err, i)
		}
		m.bodies = append(m.bodies, b)
	}
	return m, nil
}

// read makes a body of a text.
func read(kind v1alpha1.MutationType, text string, w *world) (body, error) {
	if len(text) > maxBodyBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(text), maxBodyBytes)
	}
	switch kind {
	case v1alpha1.MutationGoTemplate:
		b, err := newTemplateBody(text, w)
		if err != nil {
			return nil, err // no body, where a nil *templateBody would be one
		}
		return b, nil
	case v1alpha1.MutationMergePatch:
		return newMergeBody(text)
	case v1alpha1.MutationJSONPatch:
		return newPatchBody(text)
	default:
		return nil, fmt.Errorf("%w: %q is no type of mutation", ErrBody, shown(string(kind)))
	}
}

func (m *mutation) apply(set *manifest.Set) error {
	moved := false
	for i := range set.Objects {
		object := &set.Objects[i]
		if !m.selects(object) {
			continue
		}
		before := object.Identity
		if err := m.object(object); err != nil {
			return err
		}
		moved = moved || object.Identity != before
	}
	if !moved {
		return nil
	}
	seen := make(map[manifest.Identity]*manifest.Object, len(set.Objects))
	for i := range set.Objects {
		object := &set.Objects[i]
		id := object.Identity
		if id.Namespace == "" {
			id.Namespace = set.Namespace
		}
		if first, twice := seen[id]; twice {
			return m.fault(object, fmt.Errorf("%w: also in %s", manifest.ErrDuplicate, first.Place))
		}
		seen[id] = object
	}
	return nil
}

// object applies the bodies to one object.
func (m *mutation) object(object *manifest.Object) error {
	s := &subject{object: object}
	holds, err := m.condition.holds(s)
	if err != nil {
		fault := m.fault(object, err)
		fault.Field = "if"
		return fault
	}
	if !holds {
		return nil
	}
	for i, b := range m.bodies {
		content, err := b.change(s)
		if err != nil {
			fault := m.bodyFault(err, i)
			fault.Object, fault.Place = &object.Identity, object.Place
			if !m.secret && isSecret(object) {
				fault.Err = hushed(fault.Err, onSecret)
			}
			return fault
		}
		changed, err := manifest.FromContent(content, object.Place)
		if err == nil && (changed.Kind != object.Kind || changed.Group != object.Group) {
			err = ErrIdentity
		}
		if err != nil {
			fault := m.fault(object, plainFault(err))
			fault.Body = i + 1
			switch {
			case m.secret:
				fault.Err = hushed(fault.Err, inSecret)
			case isSecret(object):
				fault.Err = hushed(fault.Err, onSecret)
			}
			return fault
		}
		changed.Sealed = object.Sealed
		*object = changed
		s = &subject{object: object}
	}
	return nil
}

// plainFault gives the first fault without its place, which the message has already.
func plainFault(err error) error {
	var e *manifest.Error
	if !errors.As(err, &e) {
		return err
	}
	if e.Path == "" {
		return e.Err
	}
	return fmt.Errorf("makes an object whose %s %w", e.Path, e.Err)
}

func (m *mutation) fault(object *manifest.Object, err error) *Error {
	return &Error{Mutation: m.name, Object: &object.Identity, Place: object.Place, Err: err}
}

// bodyFault puts the place in a body to a fault.
func (m *mutation) bodyFault(err error, index int) *Error {
	fault := &Error{Mutation: m.name, Body: index + 1, Err: err}
	var inner *bodyError
	var parsed *manifest.Error
	switch {
	case errors.As(err, &inner):
		fault.Line, fault.Field, fault.Err = inner.line, inner.field, inner.err
	case errors.As(err, &parsed):
		fault.Line, fault.Field, fault.Err = parsed.Line, parsed.Path, parsed.Err
	}
	if m.secret {
		fault.Field, fault.Err = "", hushed(fault.Err, inSecret)
	}
	return fault
}

// bodyError is a fault with its place in a body.
type bodyError struct {
	line  int
	field string
	err   error
}

func (b *bodyError) Error() string { return b.err.Error() }
func (b *bodyError) Unwrap() error { return b.err }

// Why no more is said than what kind of fault it is.
const (
	inSecret = "the body is in a Secret, so no more is said"
	onSecret = "on a Secret, so no more is said"
)

// isSecret reports an object whose values messages must not repeat: a template may put
// any of them into its error.
func isSecret(object *manifest.Object) bool { return object.Group == "" && object.Kind == "Secret" }

// hushed keeps what kind of fault it is, and nothing of its text.
func hushed(err error, why string) error {
	for _, kind := range []error{ErrKey, ErrTemplate, ErrBody, ErrPatch, ErrIdentity, ErrTooLarge, manifest.ErrTooLarge} {
		if errors.Is(err, kind) {
			return fmt.Errorf("%w (%s)", kind, why)
		}
	}
	return fmt.Errorf("%w (%s)", ErrBody, why)
}
