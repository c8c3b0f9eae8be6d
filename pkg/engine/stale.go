// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
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
