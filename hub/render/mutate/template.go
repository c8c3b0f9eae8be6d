// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/pkg/manifest"
)

// templateBody is a partial object whose texts may be templates. It is merged into
// objects as a JSON merge patch is.
type templateBody struct {
	root any // leaf in place of each text with a template
	run  *run
}

// leaf is one text of a body that is a template.
type leaf struct {
	template *template.Template
	line     int
	field    string
}

func newTemplateBody(text string, w *world) (*templateBody, error) {
	value, restore, err := parseBody(text)
	if err != nil {
		return nil, err
	}
	b := &templateBody{run: &run{world: w}}
	reader := &leafReader{value: value, restore: restore, run: b.run}
	if b.root, err = reader.read(value.Content, nil); err != nil {
		return nil, err
	}
	if _, ok := b.root.(map[string]any); !ok {
		return nil, fmt.Errorf("%w: a goTemplate must be a partial object, a map", ErrBody)
	}
	return b, nil
}

// leafReader turns the texts of a body into leaves.
type leafReader struct {
	value   *manifest.Value
	restore func(string) string
	run     *run
}

func (r *leafReader) read(value any, steps []string) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := append(steps[:len(steps):len(steps)], key)
			if strings.Contains(r.restore(key), opening) {
				return nil, r.fault(at, fmt.Errorf("%w: a key cannot be a template: write templates as values, in quotes", ErrBody))
			}
			item, err := r.read(v[key], at)
			if err != nil {
				return nil, err
			}
			m[key] = item
		}
		return m, nil
	case []any:
		list := make([]any, len(v))
		for i, child := range v {
			item, err := r.read(child, append(steps[:len(steps):len(steps)], strconv.Itoa(i)))
			if err != nil {
				return nil, err
			}
			list[i] = item
		}
		return list, nil
	case string:
		text := r.restore(v)
		if !strings.Contains(text, opening) {
			return text, nil
		}
		parsed, err := compile(text, r.run)
		if err != nil {
			return nil, r.fault(steps, err)
		}
		return &leaf{template: parsed, line: r.value.Line(steps...), field: field(steps)}, nil
	default:
		return value, nil
	}
}

func (r *leafReader) fault(steps []string, err error) error {
	return &bodyError{line: r.value.Line(steps...), field: field(steps), err: err}
}

// field joins steps: spec.containers[0].image.
func field(steps []string) string {
	var b strings.Builder
	for _, step := range steps {
		if _, err := strconv.Atoi(step); err == nil {
			b.WriteString("[" + step + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(shown(step))
	}
	return b.String()
}

func (b *templateBody) change(s *subject) (map[string]any, error) {
	b.run.subject = s
	defer func() { b.run.subject = nil }()
	patch, err := b.run.fill(b.root)
	if err != nil {
		return nil, err
	}
	partial, ok := patch.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%w: a goTemplate must be a partial object, a map", ErrBody)
	}
	return merge(s.object.Content, partial), nil
}

// run is the state of the templates of a body; one is executed at a time.
type run struct {
	world   *world
	subject *subject
	steps   int
	kept    any
	keeps   bool
}

// fill executes the leaves of a value.
func (r *run) fill(value any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) { // which fault comes first does not change
			item, err := r.fill(v[key])
			if err != nil {
				return nil, err
			}
			m[key] = item
		}
		return m, nil
	case []any:
		list := make([]any, len(v))
		for i, child := range v {
			item, err := r.fill(child)
			if err != nil {
				return nil, err
			}
			list[i] = item
		}
		return list, nil
	case *leaf:
		made, err := r.execute(v.template)
		if err != nil {
			return nil, &bodyError{line: v.line, field: v.field, err: err}
		}
		return made, nil
	default:
		return value, nil
	}
}

// execute gives what one template makes: a text, or if it is a single action the value
// of that.
func (r *run) execute(t *template.Template) (any, error) {
	r.steps, r.kept, r.keeps = 0, nil, false
	out := &limited{}
	if err := t.Execute(out, top{r}); err != nil {
		return nil, templateFault(err)
	}
	if r.keeps {
		value, err := stored(r.kept)
		if err != nil {
			return nil, templateFault(err)
		}
		return value, nil
	}
	return out.String(), nil
}

// templateFault is our own error where there is one, else what the library says.
func templateFault(err error) error {
	var own *reason
	if errors.As(err, &own) {
		return own.err
	}
	var exec template.ExecError
	if errors.As(err, &exec) {
		err = exec.Err
	}
	return fmt.Errorf("%w: %s", ErrTemplate, shown(strings.Join(strings.Fields(err.Error()), " ")))
}

// reason is an error of our own functions on its way through the library.
type reason struct{ err error }

func (r *reason) Error() string { return r.err.Error() }
func (r *reason) Unwrap() error { return r.err }

func because(format string, args ...any) error {
	return &reason{fmt.Errorf("%w: "+format, append([]any{ErrTemplate}, args...)...)}
}

// limited is an output of bounded size.
type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxTextBytes {
		return 0, &reason{errText}
	}
	return l.Builder.Write(p)
}

var errText = fmt.Errorf("%w: a template may give %d bytes", ErrTooLarge, maxTextBytes)

// top is the dot of a template.
type top struct{ *run }

func (t top) find(key string) (any, bool) {
	switch key {
	case "cluster":
		return class{t.world, facts.Cluster}, true
	case "self":
		return self{t.world}, true
	case "object":
		if t.subject == nil {
			return nil, false
		}
		return t.subject.native(), true
	default:
		return nil, false
	}
}

func (t top) all() map[string]any {
	all := map[string]any{"cluster": class{t.world, facts.Cluster}.all(), "self": self{t.world}.all()}
	if t.subject != nil {
		all["object"] = t.subject.native()
	}
	return all
}

func (t top) called() string { return "" }
