// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"slices"
	"strings"
)

// merged is what the object would be: the render put into it, without what is stale and
// what we applied before and the render lacks. It is made for the server to judge, in a
// dry run; what is written is an apply.
func (s *stale) merged(content, live map[string]any) (map[string]any, bool) {
	out, ok := join(clone(content), clone(live), s.trees).(map[string]any)
	if !ok {
		return nil, false
	}
	given := s.taken
	if entry := ownEntry(live); entry != nil {
		given = append(given[:len(given):len(given)], entry)
	}
	for _, tree := range given {
		s.giveUp(out, content, tree, nil)
	}
	drop(out, s.fields)
	return out, true
}

// join puts a value of the render into a live one.
func join(content, live any, trees []map[string]any) any {
	switch c := content.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return content
		}
		for name, value := range c {
			if value == nil {
				continue
			}
			below, atomic := descend(trees, "f:"+name)
			if old, there := l[name]; there && !atomic {
				value = join(value, old, below)
			}
			l[name] = value
		}
		return l
	case []any:
		l, ok := live.([]any)
		if !ok || !associative(trees) {
			return content
		}
		for _, item := range c {
			key := itemKey(item, l, trees)
			i := indexOf(key, l)
			if key == "" || i < 0 {
				l = append(l, item)
				continue
			}
			below, _ := descend(trees, key)
			l[i] = join(item, l[i], below)
		}
		return l
	}
	return content
}

func associative(trees []map[string]any) bool {
	for _, tree := range trees {
		for key := range tree {
			if strings.HasPrefix(key, "k:") || strings.HasPrefix(key, "v:") {
				return true
			}
		}
	}
	return false
}

// giveUp takes away what a tree owns, the render lacks, and nobody else owns.
func (s *stale) giveUp(out, content any, tree map[string]any, keys []string) {
	for _, key := range sortedKeys(tree) {
		sub, ok := tree[key].(map[string]any)
		if !ok || key == "." {
			continue
		}
		path := append(slices.Clone(keys), key)
		if _, way := isOurs(path); way && len(sub) == 0 {
			continue
		}
		wanted, stated := stated(content, key)
		if !stated && !touched(s.others, path) {
			// The server takes what is filled in below along.
			remove(out, key)
			continue
		}
		child, there := step(out, key)
		if there && len(sub) > 0 {
			s.giveUp(child, wanted, sub, path)
		}
	}
}

// stated says whether the render has a value where an element of managedFields leads.
func stated(content any, key string) (any, bool) {
	if list, ok := content.([]any); ok {
		for _, item := range list {
			if matches(item, key) {
				return item, true
			}
		}
		return nil, false
	}
	value, there := step(content, key)
	return value, there && value != nil
}

// drop removes the fields of a tree.
func drop(out any, fields map[string]any) {
	for _, key := range sortedKeys(fields) {
		sub, ok := fields[key].(map[string]any)
		if !ok || key == "." {
			continue
		}
		if _, whole := sub["."]; whole || len(sub) == 0 {
			remove(out, key)
			continue
		}
		if child, there := step(out, key); there {
			drop(child, sub)
		}
	}
}

// remove empties a field. An item of a list can only be marked: the list itself is held
// by its parent.
func remove(from any, key string) {
	name, isField := strings.CutPrefix(key, "f:")
	switch v := from.(type) {
	case map[string]any:
		if isField {
			delete(v, name)
		}
	case []any:
		if i := indexOf(key, v); i >= 0 {
			v[i] = gone{}
		}
	}
}

// gone stands for an item of a list that is to go.
type gone struct{}

// patchOf is the merge patch that makes one value out of another; changed is false when
// they are the same.
func patchOf(from, to any) (patch any, changed bool) {
	if list, ok := to.([]any); ok {
		to = withoutGone(list)
	}
	a, isMap := from.(map[string]any)
	b, toMap := to.(map[string]any)
	if !isMap || !toMap {
		return cleaned(to), !same(asDecoded(from), asDecoded(to))
	}
	out := map[string]any{}
	for name := range a {
		if b[name] == nil {
			out[name] = nil
		}
	}
	for name, value := range b {
		if value == nil {
			continue
		}
		if sub, differs := patchOf(a[name], value); differs {
			out[name] = sub
		}
	}
	return out, len(out) > 0
}

func withoutGone(list []any) []any {
	return slices.DeleteFunc(slices.Clone(list), func(item any) bool { _, is := item.(gone); return is })
}

// cleaned is a value without nulls, which a merge patch would take for a wish, and without items that are to go.
func cleaned(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, child := range v {
			if child != nil {
				out[name] = cleaned(child)
			}
		}
		return out
	case []any:
		out := withoutGone(v)
		for i := range out {
			out[i] = cleaned(out[i])
		}
		return out
	}
	return value
}

// asDecoded is a value with its numbers as they are decoded.
func asDecoded(value any) any {
	switch v := value.(type) {
	case json.Number:
		return plainNumber(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, child := range v {
			out[name] = asDecoded(child)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = asDecoded(v[i])
		}
		return out
	}
	return value
}
