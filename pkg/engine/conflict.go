// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conflict is one field of an apply that another manager owns.
type conflict struct {
	field   string // as the server writes it: .spec.containers[name="c"].image
	manager string
}

// conflictsOf returns the fields that an apply found managed by others; nil when
// the error says nothing of the kind.
func conflictsOf(err error) []conflict {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusConflict || status.Status().Details == nil {
		return nil
	}
	var found []conflict
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			found = append(found, conflict{field: cause.Field, manager: quoted(cause.Message)})
		}
	}
	return found
}

// quoted returns what stands between the first pair of quotes: the server gives the
// name of a conflicting manager nowhere else. It is shown, nothing is decided by it.
func quoted(message string) string {
	start := strings.IndexByte(message, '"')
	if start < 0 {
		return ""
	}
	name, err := strconv.QuotedPrefix(message[start:])
	if err != nil {
		return ""
	}
	plain, err := strconv.Unquote(name)
	if err != nil {
		return ""
	}
	return clip(plain, 80)
}

// unforced returns the error for those conflicts that the policy does not let us
// win: fields that we never applied. before is the object as we applied it last,
// nil if never.
func unforced(conflicts []conflict, before map[string]any, takenOver func(manager string) bool) error {
	var fields []string
	manager := ""
	for _, c := range conflicts {
		if takenOver(c.manager) || (before != nil && reaches(before, c.field)) {
			continue
		}
		fields = append(fields, strings.TrimPrefix(c.field, "."))
		if manager == "" {
			manager = c.manager
		}
	}
	if len(fields) == 0 {
		return nil
	}
	slices.Sort(fields)
	return &conflictError{fields: slices.Compact(fields), manager: manager}
}

// reaches says whether an object has a value at a path in the server's spelling.
// Names of fields may hold dots, so every name that fits is tried.
func reaches(value any, path string) bool {
	if path == "" {
		return true
	}
	switch path[0] {
	case '.':
		m, ok := value.(map[string]any)
		if !ok {
			return false
		}
		rest := path[1:]
		for name, child := range m {
			after, ok := strings.CutPrefix(rest, name)
			if ok && (after == "" || after[0] == '.' || after[0] == '[') && reaches(child, after) {
				return true
			}
		}
		return false
	case '[':
		list, ok := value.([]any)
		if !ok {
			return false
		}
		selector, after, ok := cutSelector(path)
		if !ok {
			return false
		}
		for i, item := range list {
			if selects(selector, i, item) && reaches(item, after) {
				return true
			}
		}
	}
	return false
}

// cutSelector splits [ ... ] off a path, brackets in quotes left alone.
func cutSelector(path string) (selector, after string, ok bool) {
	inQuotes := false
	for i := 1; i < len(path); i++ {
		switch path[i] {
		case '\\':
			i++
		case '"':
			inQuotes = !inQuotes
		case ']':
			if !inQuotes {
				return path[1:i], path[i+1:], true
			}
		}
	}
	return "", "", false
}

// selects says whether a list item is meant by name="c",protocol="TCP" or ="value"
// or an index.
func selects(selector string, index int, item any) bool {
	if n, err := strconv.Atoi(selector); err == nil {
		return n == index
	}
	if value, ok := strings.CutPrefix(selector, "="); ok {
		return spelt(item) == value
	}
	m, ok := item.(map[string]any)
	if !ok {
		return false
	}
	for selector != "" {
		name, rest, ok := strings.Cut(selector, "=")
		if !ok {
			return false
		}
		var want string
		if q, err := strconv.QuotedPrefix(rest); err == nil {
			want, selector = q, strings.TrimPrefix(rest[len(q):], ",")
		} else {
			want, selector, _ = strings.Cut(rest, ",")
		}
		// A key that we left out was defaulted by the server.
		if have, there := m[name]; there && spelt(have) != want {
			return false
		}
	}
	return true
}

func spelt(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	return fmt.Sprint(v)
}
