// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"kumodo.io/convoy/pkg/manifest"
)

// opening begins a template.
const opening = "{{"

// Marks stand for templates while YAML is parsed; they are no characters of any
// language.
const markStart, markEnd = "\uE000", "\uE001"

var (
	action = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	mark   = regexp.MustCompile(markStart + `(\d+)` + markEnd)
)

// parseBody reads the YAML of a body with templates. Where it is no YAML because a
// template stands without quotes, as in `site: {{ .cluster.name }}`, it is read again
// with the templates taken for words. restore puts them back into a text.
func parseBody(text string) (value *manifest.Value, restore func(string) string, err error) {
	value, err = manifest.ParseValue("body", []byte(text))
	if err == nil {
		return value, func(s string) string { return s }, nil
	}
	if !strings.Contains(text, opening) || strings.ContainsAny(text, markStart+markEnd) {
		return nil, nil, err
	}
	var actions []string
	marked := action.ReplaceAllStringFunc(text, func(found string) string {
		actions = append(actions, found)
		// As many lines as it had, so that lines of faults are right.
		return fmt.Sprintf("%s%d%s%s", markStart, len(actions)-1, markEnd, strings.Repeat("\n", strings.Count(found, "\n")))
	})
	value, again := manifest.ParseValue("body", []byte(marked))
	if again != nil {
		fault := &bodyError{err: err}
		var parsed *manifest.Error
		if errors.As(err, &parsed) {
			fault.line, fault.field, fault.err = parsed.Line, parsed.Path, parsed.Err
		}
		fault.err = fmt.Errorf("%w: %w; templates stand in values, in quotes", ErrBody, fault.err)
		return nil, nil, fault
	}
	restore = func(s string) string {
		return mark.ReplaceAllStringFunc(s, func(found string) string {
			n := 0
			if _, err := fmt.Sscan(mark.FindStringSubmatch(found)[1], &n); err != nil || n >= len(actions) {
				return found // it was none of ours; the text had no marks, so there is none
			}
			return actions[n]
		})
	}
	return value, restore, nil
}
