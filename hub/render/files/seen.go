// SPDX-License-Identifier: Apache-2.0

package files

import (
	"slices"
	"strings"
)

// Seen names the places of the tree that were looked at: the smallest set of files
// and folders, sorted, none below another; "" is the whole tree. A file that was
// looked for and is not there counts with the folder that it would stand in. More
// than a few places are told by the folders that they have in common.
func (t *Tree) Seen() []string {
	t.mu.Lock()
	list := make([]string, 0, len(t.seen))
	for name := range t.seen {
		for at := name; ; at = parent(at) {
			_, file := t.files[at]
			_, fault := t.faults[at]
			if file || fault || t.folders[at] {
				list = append(list, at)
				break
			}
		}
	}
	t.mu.Unlock()
	list = outermost(list)
	for len(list) > maxSeen {
		list = outermost(lift(list))
	}
	return list
}

// outermost sorts, and leaves out what is below another entry.
func outermost(list []string) []string {
	slices.Sort(list)
	list = slices.Compact(list)
	var kept []string
	for _, name := range list {
		// Sorted, a folder stands before all that is below it, though not next to it.
		if !slices.ContainsFunc(kept, func(folder string) bool { return below(name, folder) }) {
			kept = append(kept, name)
		}
	}
	return kept
}

// lift replaces the deepest entries by the folders that they are in.
func lift(list []string) []string {
	deepest := 0
	for _, name := range list {
		deepest = max(deepest, strings.Count(name, "/"))
	}
	for i, name := range list {
		if strings.Count(name, "/") == deepest {
			list[i] = parent(name)
		}
	}
	return list
}
