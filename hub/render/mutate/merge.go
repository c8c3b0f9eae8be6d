// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"fmt"

	"kumodo.io/convoy/pkg/manifest"
)

// mergeBody is a JSON merge patch (RFC 7386): maps are merged, null removes, and all
// else, lists as a whole among it, replaces.
type mergeBody struct{ patch map[string]any }

func newMergeBody(text string) (body, error) {
	value, err := manifest.ParseValue("body", []byte(text))
	if err != nil {
		return nil, err
	}
	patch, ok := value.Content.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%w: a merge patch must be a map", ErrBody)
	}
	return &mergeBody{patch: patch}, nil
}

func (b *mergeBody) change(s *subject) (map[string]any, error) {
	return merge(s.object.Content, b.patch), nil
}

// merge gives a value with a patch over it; neither is changed, and the parts of the
// patch are copied, since it meets many objects.
func merge(value, patch map[string]any) map[string]any {
	merged := make(map[string]any, len(value)+len(patch))
	for key, item := range value {
		merged[key] = item
	}
	for key, item := range patch {
		switch p := item.(type) {
		case nil:
			delete(merged, key)
		case map[string]any:
			inner, _ := merged[key].(map[string]any)
			merged[key] = merge(inner, p)
		default:
			merged[key] = clone(item)
		}
	}
	return merged
}

// clone copies lists and maps.
func clone(value any) any {
	switch v := value.(type) {
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = clone(item)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key] = clone(item)
		}
		return m
	default:
		return value
	}
}
