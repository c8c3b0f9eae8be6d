// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/pkg/manifest"
)

// Diff writes what differs between two lists that this Masker has masked, object by
// object in the form of diff -u, in the order of after, and then what is gone. Objects
// that name no namespace are those of the given one. It says whether anything differs.
//
// A value that is masked in what was before cannot be compared and counts as equal.
func (m *Masker) Diff(w io.Writer, namespace string, before, after []Object) (bool, error) {
	placed := func(id manifest.Identity) manifest.Identity {
		if id.Namespace == "" {
			id.Namespace = namespace
		}
		return id
	}
	was := make(map[manifest.Identity]Object, len(before))
	for _, object := range before {
		was[placed(object.Identity)] = object
	}
	d := &differ{masker: m, w: w, numbers: map[string]int{}}
	for _, object := range after {
		id := placed(object.Identity)
		old, there := was[id]
		delete(was, id)
		if err := d.object(object.Identity, old.Text, object.Text, there, true); err != nil {
			return false, err
		}
	}
	for _, object := range before {
		if _, gone := was[placed(object.Identity)]; gone {
			if err := d.object(object.Identity, object.Text, nil, true, false); err != nil {
				return false, err
			}
		}
	}
	return d.found, nil
}

type differ struct {
	masker *Masker
	w      io.Writer
	found  bool
	// numbers of marks, in the order in which they are shown: a mark itself differs
	// from run to run.
	numbers map[string]int
}

func (d *differ) object(id manifest.Identity, old, now []byte, was, is bool) error {
	before, err := decode(old, was)
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	after, err := decode(now, is)
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	before, after = d.forget(before, after)
	left, err := d.lines(before, was)
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	right, err := d.lines(after, is)
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	hunks := unified(left, right)
	if hunks == "" {
		return nil
	}
	d.found = true
	head := func(prefix string, there bool) string {
		if !there {
			return prefix + "/dev/null"
		}
		return prefix + Name(id)
	}
	_, err = fmt.Fprintf(d.w, "%s\n%s\n%s", head("--- ", was), head("+++ ", is), hunks)
	return err
}

func decode(text []byte, there bool) (value any, err error) {
	if !there {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrObject, err)
	}
	return value, nil
}

// forget blanks, on both sides, values that are unknown on the left.
func (d *differ) forget(before, after any) (left, right any) {
	switch old := before.(type) {
	case map[string]any:
		now, ok := after.(map[string]any)
		for key, value := range old {
			var other any
			if ok {
				other = now[key]
			}
			value, other = d.forget(value, other)
			old[key] = value
			if _, there := now[key]; ok && there {
				now[key] = other
			}
		}
	case []any:
		now, ok := after.([]any)
		for i, value := range old {
			var other any
			if ok && i < len(now) {
				other = now[i]
			}
			old[i], other = d.forget(value, other)
			if ok && i < len(now) {
				now[i] = other
			}
		}
	case string:
		if d.masker.isUnknown(old) {
			if _, text := after.(string); text {
				after = sealed
			}
			return sealed, after
		}
	}
	return before, after
}

// lines of an object's YAML, with its marks numbered.
func (d *differ) lines(value any, there bool) ([]string, error) {
	if !there {
		return nil, nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrObject, err)
	}
	shown, err := yaml.JSONToYAML(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrObject, err)
	}
	shown = marker.ReplaceAllFunc(shown, func(mark []byte) []byte {
		if string(mark) == sealed {
			return mark
		}
		number, known := d.numbers[string(mark)]
		if !known {
			number = len(d.numbers) + 1
			d.numbers[string(mark)] = number
		}
		return []byte("<sealed:" + strconv.Itoa(number) + ">")
	})
	return strings.Split(strings.TrimSuffix(string(shown), "\n"), "\n"), nil
}
