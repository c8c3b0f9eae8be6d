// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"maps"
	"slices"

	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/pkg/manifest"
)

// hasKey asks whether a map has a key, as has() in an expression.
func hasKey(base any, key string) (bool, error) {
	switch v := base.(type) {
	case lookup:
		_, ok := v.find(key)
		return ok, nil
	case map[string]any:
		_, ok := v[key]
		return ok, nil
	}
	return false, because("hasKey: %s has no keys", kindOf(base))
}

// getOr gives the value of a key, or another one if it is not there.
func getOr(base any, key string, otherwise any) (any, error) {
	switch v := base.(type) {
	case lookup:
		if value, ok := v.find(key); ok {
			return value, nil
		}
		return otherwise, nil
	case map[string]any:
		if value, ok := v[key]; ok {
			return value, nil
		}
		return otherwise, nil
	}
	return nil, because("getOr: %s has no keys", kindOf(base))
}

// index follows keys and places of lists, for keys that are no words.
func (r *run) index(base any, path ...any) (any, error) {
	for _, step := range path {
		switch v := base.(type) {
		case lookup, map[string]any:
			key, ok := step.(string)
			if !ok {
				return nil, because("index: a key must be text")
			}
			var err error
			if base, err = r.get(v, key); err != nil {
				return nil, err
			}
		case []any:
			n, err := toInt(step)
			if err != nil || n < 0 || n >= int64(len(v)) {
				return nil, because("index: the list has no such place")
			}
			base = v[n]
		default:
			return nil, because("index: %s has no parts", kindOf(base))
		}
	}
	return base, nil
}

// all gives a map that can be ranged over; every key counts as asked for.
func all(base any) (map[string]any, error) {
	switch v := base.(type) {
	case lookup:
		return v.all(), nil
	case map[string]any:
		return v, nil
	}
	return nil, because("all: %s is no map", kindOf(base))
}

func keys(base any) ([]any, error) {
	m, err := all(base)
	if err != nil {
		return nil, err
	}
	var made []any
	for _, key := range slices.Sorted(maps.Keys(m)) {
		made = append(made, key)
	}
	return made, nil
}

func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, because("dict: a key without a value")
	}
	made := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			return nil, because("dict: a key must be text")
		}
		made[key] = pairs[i+1]
	}
	return made, nil
}

func list(items ...any) []any { return items }

func first(items []any) (any, error) {
	if len(items) == 0 {
		return nil, because("first: the list is empty")
	}
	return items[0], nil
}

func last(items []any) (any, error) {
	if len(items) == 0 {
		return nil, because("last: the list is empty")
	}
	return items[len(items)-1], nil
}

// has reports a text, number or bool in a list.
func has(item any, items []any) bool {
	want, err := text(item)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(items, func(one any) bool {
		got, err := text(one)
		return err == nil && got == want && kindOf(one) == kindOf(item)
	})
}

func toJSON(value any) (string, error) {
	kept, err := stored(value)
	if err != nil {
		return "", err
	}
	made, err := manifest.Append(nil, kept)
	if err != nil {
		return "", because("toJson: the value is nested too deep")
	}
	return string(made), fits(len(made))
}

func toYAML(value any) (string, error) {
	text, err := toJSON(value)
	if err != nil {
		return "", err
	}
	made, err := yaml.JSONToYAML([]byte(text))
	if err != nil {
		return "", because("toYaml: the value cannot be written")
	}
	return string(made), fits(len(made))
}

// fromYAML reads a text under the rules and limits of manifests.
func fromYAML(text string) (any, error) {
	value, err := manifest.ParseValue("text", []byte(text))
	if err != nil {
		return nil, because("the text is not valid YAML")
	}
	return native(value.Content), nil
}
