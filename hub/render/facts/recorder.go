// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// Recorder answers from a World and remembers what was asked. It may be used by many
// at once.
type Recorder struct {
	world *World

	mu    sync.Mutex
	reads map[string]bool
}

var _ Facts = (*Recorder)(nil)

// NewRecorder makes a Recorder that has been asked nothing.
func NewRecorder(world *World) *Recorder {
	return &Recorder{world: world, reads: map[string]bool{}}
}

// Read gives one fact and remembers its name, also when it is not there.
func (r *Recorder) Read(name string) (value string, ok bool) {
	r.Note(name)
	return r.world.Value(name)
}

// All gives a class and remembers that it was asked for as a whole.
func (r *Recorder) All(class string) map[string]string {
	if class == APIs {
		r.Note(APIs)
		list := make(map[string]string, len(r.world.APIVersions))
		for _, api := range r.world.APIVersions {
			list[api] = "served"
		}
		return list
	}
	r.Note(class + whole)
	list := maps.Clone(r.world.class(class))
	if list == nil {
		list = map[string]string{}
	}
	return list
}

// Note remembers a name.
func (r *Recorder) Note(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads[name] = true
}

// Reads gives the names of all that was asked, sorted, none that another covers. Of
// too many, those of a class are named by the class.
func (r *Recorder) Reads() []string {
	r.mu.Lock()
	list := slices.Collect(maps.Keys(r.reads))
	r.mu.Unlock()
	for {
		list = uncovered(list)
		if len(list) <= maxReads || !widen(list) {
			return list
		}
	}
}

// wholes are the classes and the names that cover all of theirs.
var wholes = map[string]string{
	Cluster: Cluster + whole, SelfLabels: SelfLabels + whole, SelfAnnotations: SelfAnnotations + whole, API: APIs, Image: Image + whole,
}

// uncovered sorts, and leaves out what a whole class covers.
func uncovered(list []string) []string {
	slices.Sort(list)
	list = slices.Compact(list)
	return slices.DeleteFunc(list, func(name string) bool {
		for class, all := range wholes {
			if name != all && strings.HasPrefix(name, class) && slices.Contains(list, all) {
				return true
			}
		}
		return false
	})
}

// widen names the class with the most entries whole, in place; false if there is none.
func widen(list []string) bool {
	count := map[string]int{}
	for _, name := range list {
		for class := range wholes {
			if strings.HasPrefix(name, class) {
				count[class]++
			}
		}
	}
	most := ""
	for class, n := range count {
		if n > 1 && (most == "" || n > count[most] || n == count[most] && class < most) {
			most = class
		}
	}
	if most == "" {
		return false
	}
	for i, name := range list {
		if strings.HasPrefix(name, most) {
			list[i] = wholes[most]
		}
	}
	return true
}
