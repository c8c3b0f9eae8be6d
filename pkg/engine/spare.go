// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// An apply that leaves a field out gives it up. If nobody else owns it then, the server
// takes it away, or back to its default. So a field that is left to others stays in our
// apply with the value that it has, until somebody else owns it too.

// patterns are what is left of JSON pointers on the way down into an object.
type patterns [][]string

// into follows one step: a field, or the index of an item, which "*" stands for too.
// hit says that a pointer ends there.
func (p patterns) into(token string, item bool) (next patterns, hit bool) {
	for _, tokens := range p {
		if len(tokens) == 0 || (tokens[0] != token && (!item || tokens[0] != "*")) {
			continue
		}
		if len(tokens) == 1 {
			return nil, true
		}
		next = append(next, tokens[1:])
	}
	return next, false
}

// whole says whether a pointer is to the object itself.
func (p patterns) whole() bool {
	return slices.ContainsFunc(p, func(tokens []string) bool { return len(tokens) == 0 })
}

// neverLeft are fields that nobody else may have: what names the object, and our marks.
var neverLeft = [][]string{
	{"f:apiVersion"},
	{"f:kind"},
	{"f:metadata", "f:name"},
	{"f:metadata", "f:namespace"},
	{"f:metadata", "f:labels", "f:" + v1alpha1.LabelManaged},
	{"f:metadata", "f:annotations", "f:" + v1alpha1.AnnotationOwner},
}

// isOurs says whether a path is one of neverLeft, or on the way to one.
func isOurs(keys []string) (leaf, way bool) {
	for _, path := range neverLeft {
		if len(keys) <= len(path) && slices.Equal(keys, path[:len(keys)]) {
			return len(keys) == len(path), true
		}
	}
	return false, false
}

// leftPath is a field of ours that is left to others.
type leftPath struct {
	keys []string
	// from is how many of keys lead to what a rule names.
	from int
}

// split takes the fields that are left to others out of the fields that an entry of
// managedFields owns. live is the object whose entry that is: it says which item of a
// list has which index.
func (t spared) split(entry map[string]any, live map[string]any) (ours map[string]any, left []leftPath) {
	if t.none() {
		return entry, nil
	}
	s := splitter{managers: t.trees(live)}
	root := -1
	if patterns(t.pointers).whole() {
		root = 0
	}
	ours = s.walk(entry, live, true, t.pointers, nil, root)
	return ours, s.left
}

// mark feeds what is left to others to the hash of a projection, so that an object is
// compared anew when that changes. Where nothing is, there is nothing to feed.
func (t spared) mark(h hash.Hash) {
	for _, pointer := range t.pointers {
		writeMark(h, markPath)
		for _, token := range pointer {
			writeText(h, token)
		}
	}
	for _, manager := range slices.Sorted(maps.Keys(t.managers)) {
		writeMark(h, markUp)
		writeText(h, manager)
	}
}

// trees are the fields of the managers that a rule names.
func (t spared) trees(live map[string]any) []map[string]any {
	var trees []map[string]any
	for _, e := range managers(live) {
		if t.managers[e.manager] && !ourEntry(e) {
			trees = append(trees, e.fields)
		}
	}
	return trees
}

func ourEntry(e managerEntry) bool { return e.manager == v1alpha1.FieldManager && e.applied }

type splitter struct {
	managers []map[string]any
	left     []leftPath
}

// walk copies fields without those that are left. from is not negative below a path
// that a rule names.
func (s *splitter) walk(fields map[string]any, live any, there bool, p patterns, keys []string, from int) map[string]any {
	ours := make(map[string]any, len(fields))
	for _, key := range inOrder(fields, live) {
		path := append(slices.Clone(keys), key)
		mark, _ := isOurs(path)
		if mark || (key == "." && from < 0) {
			ours[key] = fields[key]
		}
		if mark || key == "." {
			continue
		}
		next, below := patterns(nil), from
		if from < 0 {
			token, item := tokenOf(key, live)
			var hit bool
			if next, hit = p.into(token, item); hit {
				below = len(path)
			}
		}
		sub, ok := fields[key].(map[string]any)
		if !ok || len(sub) == 0 {
			switch {
			case below >= 0:
				s.left = append(s.left, leftPath{keys: path, from: below})
			case s.theirs(path):
				s.left = append(s.left, leftPath{keys: path, from: len(path)})
			default:
				ours[key] = fields[key]
			}
			continue
		}
		value, found := any(nil), false
		if there {
			value, found = step(live, key)
		}
		// Without any of its parts a field would stand for all of them.
		if kept := s.walk(sub, value, found, next, path, below); len(kept) > 0 {
			ours[key] = kept
		}
	}
	return ours
}

// theirs says whether a manager that a rule names owns a leaf.
func (s *splitter) theirs(path []string) bool {
	return slices.ContainsFunc(s.managers, func(tree map[string]any) bool { return owns(tree, path) })
}

// inOrder lists the keys of fields: those of items of a list as they stand in it.
func inOrder(fields map[string]any, live any) []string {
	keys := sortedKeys(fields)
	if _, ok := live.([]any); ok {
		slices.SortStableFunc(keys, func(a, b string) int { return indexOf(a, live) - indexOf(b, live) })
	}
	return keys
}

// tokenOf is the token of a JSON pointer for an element of a path of managedFields.
func tokenOf(key string, live any) (token string, item bool) {
	kind, rest, _ := strings.Cut(key, ":")
	if kind == "f" {
		return rest, false
	}
	i := indexOf(key, live)
	if i < 0 {
		return "", false // it is not there, so that no pointer leads to it
	}
	return strconv.Itoa(i), true
}

// indexOf finds an item in a list; -1: it is not there.
func indexOf(key string, live any) int {
	list, ok := live.([]any)
	if !ok {
		return -1
	}
	for i := range list {
		if _, found := step(list[i:i+1], key); found && !strings.HasPrefix(key, "i:") {
			return i
		}
	}
	if i, err := strconv.Atoi(strings.TrimPrefix(key, "i:")); err == nil && i < len(list) {
		return i
	}
	return -1
}

// stripped is an object without the values that pointers lead to. What is not changed
// is shared with the original.
func (t spared) stripped(live map[string]any) map[string]any {
	if len(t.pointers) == 0 {
		return live
	}
	out, ok := without(live, t.pointers, patterns(t.pointers).whole(), nil).(map[string]any)
	if !ok {
		return nil
	}
	return out
}

func without(value any, p patterns, all bool, keys []string) any {
	if len(p) == 0 && !all {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, child := range v {
			path := append(slices.Clone(keys), "f:"+name)
			mark, way := isOurs(path)
			next, hit := p.into(name, false)
			switch {
			case mark:
				out[name] = child
			case hit || all:
				if way {
					out[name] = without(child, nil, true, path)
				}
			default:
				out[name] = without(child, next, false, path)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			if next, hit := p.into(strconv.Itoa(i), true); !hit && !all {
				out[i] = without(child, next, false, append(slices.Clone(keys), "i:"))
			}
		}
		return out
	}
	return value
}

// clone copies a JSON value.
func clone(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, child := range v {
			out[k] = clone(child)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = clone(child)
		}
		return out
	}
	return value
}

// plainNumber turns a number as it is written into one as it is decoded.
func plainNumber(value any) any {
	n, ok := value.(json.Number)
	if !ok {
		return value
	}
	if i, err := n.Int64(); err == nil {
		return i
	}
	if f, err := n.Float64(); err == nil {
		return f
	}
	return value
}
