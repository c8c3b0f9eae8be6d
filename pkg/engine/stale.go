// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strconv"
	"strings"
)

// What an apply gives up goes away only as far as somebody owned it. A value that the
// server filled in beside a field of ours has no owner: where the render sets another
// member of a union, it stays there, and the server refuses the two together. stale
// finds such values.
type stale struct {
	// trees are the fields of all managers; others those that are not ours to take.
	trees, others []map[string]any
	// taken are the fields of managers whose place we take. What the render lacks of
	// them goes.
	taken []map[string]any
	// forced: what is beside a field that the server named goes, whoever owns it.
	forced bool

	// fields to go, in the form of managedFields; held are those that others own.
	fields map[string]any
	held   []change
}

// staleOf finds what has to go of a live object for its content to be applied. named
// are the fields that the server refused; takes says whose place we take.
func staleOf(content, live map[string]any, named []string, takes func(managerEntry) bool, forced bool) *stale {
	s := &stale{forced: forced, fields: map[string]any{}}
	for _, e := range managers(live) {
		s.trees = append(s.trees, e.fields)
		switch {
		case ourEntry(e) && e.subresource == "":
		case takes(e):
			s.taken = append(s.taken, e.fields)
		default:
			s.others = append(s.others, e.fields)
		}
	}
	entries := managers(live)
	for _, field := range named {
		steps, ok := fieldSteps(field)
		if !ok {
			continue
		}
		s.beside(content, live, steps, nil, s.trees, entries)
	}
	if len(named) > 0 {
		s.nulls(content, live, nil, s.trees, entries)
	}
	return s
}

// nulls takes what the render wishes away: of a field that has fields itself the server
// keeps those that are not ours.
func (s *stale) nulls(content, live any, keys []string, trees []map[string]any, entries []managerEntry) {
	switch c := content.(type) {
	case map[string]any:
		has, ok := live.(map[string]any)
		if !ok {
			return
		}
		for _, name := range sortedKeys(c) {
			path := append(slices.Clone(keys), "f:"+name)
			below, atomic := descend(trees, "f:"+name)
			switch {
			case atomic || has[name] == nil:
			case c[name] != nil:
				s.nulls(c[name], has[name], path, below, entries)
			case !touched(s.others, path):
				s.take(has[name], path, entries)
			}
		}
	case []any:
		for _, item := range c {
			key := itemKey(item, live, trees)
			child, there := step(live, key)
			if key == "" || !there {
				continue
			}
			below, _ := descend(trees, key)
			s.nulls(item, child, append(slices.Clone(keys), key), below, entries)
		}
	}
}

// fieldStep is one step of a path as the server names it: a field, or an index.
type fieldStep struct {
	name string
	item bool
}

// fieldSteps reads a path of a cause: spec.volumes[0].configMap. A key of a map, which
// stands in brackets too, is no member of a union.
func fieldSteps(path string) ([]fieldStep, bool) {
	var steps []fieldStep
	for part := range strings.SplitSeq(path, ".") {
		name, rest, indexed := strings.Cut(part, "[")
		if name == "" {
			return nil, false
		}
		steps = append(steps, fieldStep{name: name})
		for indexed {
			index, after, closed := strings.Cut(rest, "]")
			if _, err := strconv.Atoi(index); err != nil || !closed {
				return nil, false
			}
			steps = append(steps, fieldStep{item: true})
			_, rest, indexed = strings.Cut(after, "[")
		}
	}
	return steps, true
}

// beside goes down to the field that the server named. Which of the items of a list it
// means depends on how the server merges it, so all that the render has are looked at.
func (s *stale) beside(content, live any, steps []fieldStep, keys []string, trees []map[string]any, entries []managerEntry) {
	if steps[0].item {
		list, ok := content.([]any)
		if !ok {
			return
		}
		for _, item := range list {
			key := itemKey(item, live, trees)
			child, there := step(live, key)
			if key == "" || !there {
				continue
			}
			path := append(slices.Clone(keys), key)
			if len(steps) == 1 {
				s.inside(item, child, path, entries)
				continue
			}
			below, _ := descend(trees, key)
			s.beside(item, child, steps[1:], path, below, entries)
		}
		return
	}
	has, ok := live.(map[string]any)
	if !ok {
		return
	}
	wants, ok := content.(map[string]any)
	if !ok {
		return // nothing of it is the render's
	}
	name := steps[0].name
	key := "f:" + name
	if len(steps) > 1 {
		below, atomic := descend(trees, key)
		if atomic {
			return // it is replaced whole
		}
		s.beside(wants[name], has[name], steps[1:], append(slices.Clone(keys), key), below, entries)
		return
	}
	if wants[name] == nil {
		s.take(has[name], append(slices.Clone(keys), key), entries)
		return
	}
	s.members(wants, has, name, keys, entries)
	s.inside(wants[name], has[name], append(slices.Clone(keys), key), entries)
}

// inside looks at the members of a field that the server named.
func (s *stale) inside(content, live any, keys []string, entries []managerEntry) {
	wants, ok := content.(map[string]any)
	if !ok {
		return
	}
	if has, ok := live.(map[string]any); ok {
		s.members(wants, has, "", keys, entries)
	}
}

// members takes what is beside a field of the render, is made of fields itself, and the
// render does not have. Plain values are no members that the server would fill in.
func (s *stale) members(wants, has map[string]any, but string, keys []string, entries []managerEntry) {
	for _, name := range sortedKeys(has) {
		if _, isMap := has[name].(map[string]any); isMap && name != but && wants[name] == nil {
			s.take(has[name], append(slices.Clone(keys), "f:"+name), entries)
		}
	}
}

func (s *stale) take(live any, keys []string, entries []managerEntry) {
	if live == nil {
		return
	}
	if _, way := isOurs(keys); way || keys[0] == "f:metadata" || keys[0] == "f:status" {
		return
	}
	if touched(s.others, keys) && (!s.forced || around(s.others, keys)) {
		s.held = append(s.held, change{keys: keys, path: displayPath(keys), managed: managerOf(entries, keys)})
		return
	}
	at := s.fields
	for _, key := range keys[:len(keys)-1] {
		next, ok := at[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	at[keys[len(keys)-1]] = fieldsOf(live)
}

// fieldsOf are all fields of a value, in the form of managedFields. A list counts as one.
func fieldsOf(value any) map[string]any {
	fields := map[string]any{}
	if m, ok := value.(map[string]any); ok && len(m) > 0 {
		fields["."] = map[string]any{}
		for name, child := range m {
			fields["f:"+name] = fieldsOf(child)
		}
	}
	return fields
}

// touched says whether one of the trees owns a field, anything in it, or all around it.
func touched(trees []map[string]any, keys []string) bool {
	return slices.ContainsFunc(trees, func(tree map[string]any) bool {
		for _, key := range keys {
			sub, ok := tree[key].(map[string]any)
			if !ok {
				return false
			}
			if tree = sub; len(tree) == 0 {
				return true
			}
		}
		return true
	})
}

// around says whether one of the trees owns something whole that a field is in.
func around(trees []map[string]any, keys []string) bool {
	return slices.ContainsFunc(trees, func(tree map[string]any) bool {
		for _, key := range keys[:len(keys)-1] {
			sub, ok := tree[key].(map[string]any)
			if !ok {
				return false
			}
			if tree = sub; len(tree) == 0 {
				return true
			}
		}
		return false
	})
}

// disown takes fields out of those that a manager owns. What has none left is not owned
// any more: without any of its parts it would stand for all of them.
func disown(tree, fields map[string]any) {
	for key, value := range fields {
		sub, ok := value.(map[string]any)
		have, owned := tree[key].(map[string]any)
		if !ok || !owned || key == "." {
			continue
		}
		if _, whole := sub["."]; whole || len(sub) == 0 {
			delete(tree, key)
			continue
		}
		if disown(have, sub); len(have) == 0 {
			delete(tree, key)
		}
	}
}

// none says that nothing has to go that an apply would not take away by itself.
func (s *stale) none() bool { return len(s.fields) == 0 && len(s.taken) == 0 }

// paths of the fields to go, for people.
func (s *stale) paths() []change {
	var found []change
	var walk func(fields map[string]any, keys []string)
	walk = func(fields map[string]any, keys []string) {
		if _, whole := fields["."]; whole || len(fields) == 0 {
			found = append(found, change{keys: slices.Clone(keys), path: displayPath(keys)})
			return
		}
		for _, key := range sortedKeys(fields) {
			if sub, ok := fields[key].(map[string]any); ok {
				walk(sub, append(keys, key))
			}
		}
	}
	if len(s.fields) > 0 {
		walk(s.fields, nil)
	}
	return found
}
