// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"
)

// leave changes the content of an apply of an object that exists, live, so that it
// leaves alone what is left to others:
//
//   - a field that somebody else owns, or that is not there, is taken out;
//   - a field that only we own stays, with the value that it has now;
//   - within a list or map that is owned whole, the values that are there are filled in;
//   - what is not there yet is made whole: a new item of a list, a new map.
func (t spared) leave(content, live map[string]any) {
	if t.none() {
		return
	}
	all := managers(live)
	var trees []map[string]any
	for _, e := range all {
		trees = append(trees, e.fields)
	}
	stripFields(content, live, trees, t.pointers, patterns(t.pointers).whole(), nil)
	for _, tree := range t.trees(live) {
		cut(content, tree)
	}
	entry := ownEntry(live)
	if entry == nil {
		return // nothing is ours, so nothing is given up
	}
	_, left := t.split(entry, live)
	for _, path := range left {
		if managerOf(all, path.keys) != "" {
			continue
		}
		if value, there := follow(live, path.keys); there {
			plant(content, live, path.keys, 0, path.from, value)
		}
	}
}

// follow goes down a path of managedFields.
func follow(value any, keys []string) (any, bool) {
	for _, key := range keys {
		var there bool
		if value, there = step(value, key); !there {
			return nil, false
		}
	}
	return value, true
}

// stripFields takes what pointers lead to out of a map of the render. trees are the
// fields of all managers at its place.
func stripFields(content map[string]any, live any, trees []map[string]any, p patterns, all bool, keys []string) {
	there, ok := live.(map[string]any)
	if !ok {
		return // it is new
	}
	for _, name := range sortedKeys(content) {
		path := append(slices.Clone(keys), "f:"+name)
		mark, way := isOurs(path)
		next, hit := p.into(name, false)
		if mark {
			continue
		}
		if hit = hit || all; hit && !way {
			delete(content, name)
			continue
		}
		liveChild, found := there[name]
		if !hit && (len(next) == 0 || !found) {
			continue
		}
		below, atomic := descend(trees, "f:"+name)
		switch child := content[name].(type) {
		case map[string]any:
			if atomic {
				content[name] = filled(child, liveChild, next)
				continue
			}
			before := len(child)
			stripFields(child, liveChild, below, next, hit, path)
			if before > 0 && len(child) == 0 {
				delete(content, name)
			}
		case []any:
			if atomic {
				content[name] = filled(child, liveChild, next)
			} else {
				content[name] = stripItems(child, liveChild, below, next, path)
			}
		}
	}
}

// descend follows one step in the fields of all managers; atomic says that one of them
// owns what is there as a whole.
func descend(trees []map[string]any, key string) (below []map[string]any, atomic bool) {
	for _, tree := range trees {
		sub, ok := tree[key].(map[string]any)
		if !ok {
			continue
		}
		if len(sub) == 0 {
			atomic = true
			continue
		}
		below = append(below, sub)
	}
	return below, atomic
}

// stripItems is stripFields for a list whose items have owners of their own.
func stripItems(content []any, live any, trees []map[string]any, p patterns, keys []string) []any {
	out := content[:0:0]
	for _, item := range content {
		key := itemKey(item, live, trees)
		index := -1
		if key != "" {
			index = indexOf(key, live)
		}
		if index < 0 {
			out = append(out, item) // it is new
			continue
		}
		next, hit := p.into(strconv.Itoa(index), true)
		fields, ok := item.(map[string]any)
		switch {
		case hit && !ok:
		case hit:
			out = append(out, onlyKeys(fields, key))
		default:
			if ok && len(next) > 0 {
				child, _ := step(live, key)
				below, _ := descend(trees, key)
				stripFields(fields, child, below, next, false, append(slices.Clone(keys), key))
			}
			out = append(out, item)
		}
	}
	return out
}

// itemKey finds under which key of managedFields an item of the render is known; empty:
// under none.
func itemKey(item, live any, trees []map[string]any) string {
	for _, tree := range trees {
		for _, key := range sortedKeys(tree) {
			if matches(item, key) {
				if _, there := step(live, key); there {
					return key
				}
			}
		}
	}
	return ""
}

// matches says whether an item of the render is the one that an element of a path means.
func matches(item any, key string) bool {
	kind, rest, _ := strings.Cut(key, ":")
	switch kind {
	case "k":
		fields, ok := item.(map[string]any)
		keys, read := keysOf(rest)
		if !ok || !read {
			return false
		}
		plain := make(map[string]any, len(keys))
		for name := range keys {
			if value, there := fields[name]; there {
				plain[name] = plainNumber(value)
			}
		}
		return hasKeys(plain, keys)
	case "v":
		var value any
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(rest), &value); err != nil {
			return false
		}
		return same(plainNumber(item), value)
	}
	return false
}

func keysOf(text string) (map[string]any, bool) {
	var keys map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &keys); err != nil {
		return nil, false
	}
	return keys, true
}

// onlyKeys is an item of a list with nothing but what tells it from others.
func onlyKeys(item map[string]any, key string) map[string]any {
	keys, _ := keysOf(strings.TrimPrefix(key, "k:"))
	out := map[string]any{}
	for name := range keys {
		if value, there := item[name]; there {
			out[name] = value
		}
	}
	return out
}

// filled is a value that is owned whole, with what pointers lead to as it is now.
func filled(content, live any, p patterns) any {
	switch c := content.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return content
		}
		for name := range l {
			if _, there := c[name]; !there {
				if _, hit := p.into(name, false); hit {
					c[name] = clone(l[name])
				}
			}
		}
		for _, name := range sortedKeys(c) {
			value, there := l[name]
			next, hit := p.into(name, false)
			switch {
			case hit && !there:
				delete(c, name)
			case hit:
				c[name] = clone(value)
			case there && len(next) > 0:
				c[name] = filled(c[name], value, next)
			}
		}
	case []any:
		l, ok := live.([]any)
		if !ok {
			return content
		}
		if slices.ContainsFunc(p, func(tokens []string) bool { return len(tokens) == 1 && tokens[0] == "*" }) {
			return clone(l)
		}
		for i := range min(len(c), len(l)) {
			next, hit := p.into(strconv.Itoa(i), true)
			if hit {
				c[i] = clone(l[i])
			} else if len(next) > 0 {
				c[i] = filled(c[i], l[i], next)
			}
		}
	}
	return content
}

// cut takes the fields of a manager out of the render. The fields that tell an item of a
// list from others stay.
func cut(content any, tree map[string]any) {
	fields, ok := content.(map[string]any)
	if !ok {
		return
	}
	for _, key := range sortedKeys(tree) {
		kind, name, _ := strings.Cut(key, ":")
		child, there := fields[name]
		sub, known := tree[key].(map[string]any)
		if kind != "f" || !there || !known {
			continue
		}
		if len(sub) == 0 {
			delete(fields, name)
			continue
		}
		if list, isList := child.([]any); isList {
			fields[name] = cutItems(list, sub)
			continue
		}
		cut(child, sub)
		if m, isMap := child.(map[string]any); isMap && len(m) == 0 {
			delete(fields, name)
		}
	}
}

func cutItems(list []any, tree map[string]any) []any {
	out := list[:0:0]
	for _, item := range list {
		drop := false
		for _, key := range sortedKeys(tree) {
			if !matches(item, key) {
				continue
			}
			fields, isMap := item.(map[string]any)
			sub, ok := tree[key].(map[string]any)
			if !isMap {
				drop = true // a member of a set
				continue
			}
			if ok {
				keep := onlyKeys(fields, key)
				cut(fields, sub)
				maps.Copy(fields, keep)
			}
		}
		if !drop {
			out = append(out, item)
		}
	}
	return out
}

// plant puts the value of a path into the render, where it has none. Items of lists are
// made only below what a rule names, which ends after from keys.
func plant(content, live any, keys []string, depth, from int, value any) any {
	kind, rest, _ := strings.Cut(keys[0], ":")
	last := len(keys) == 1
	child, _ := step(live, keys[0])
	switch kind {
	case "f":
		fields, ok := content.(map[string]any)
		if !ok {
			if content != nil {
				return content
			}
			fields = map[string]any{}
		}
		have, there := fields[rest]
		switch {
		case last && !there:
			fields[rest] = clone(value)
		case !last:
			if made := plant(have, child, keys[1:], depth+1, from, value); made != nil {
				fields[rest] = made
			}
		}
		if content == nil && len(fields) == 0 {
			return nil
		}
		return fields
	case "k", "v":
		list, ok := content.([]any)
		if !ok && content != nil {
			return content
		}
		at := slices.IndexFunc(list, func(item any) bool { return matches(item, keys[0]) })
		if at < 0 {
			if depth+1 < from {
				return content // the render has no such item any more
			}
			item := clone(value)
			if kind == "k" {
				fields, isMap := child.(map[string]any)
				if !isMap {
					return content
				}
				item = onlyKeys(fields, keys[0])
			}
			list = append(list, item)
			at = len(list) - 1
		}
		if !last {
			list[at] = plant(list[at], child, keys[1:], depth+1, from, value)
		}
		return list
	}
	return content
}
