// SPDX-License-Identifier: Apache-2.0

package render

import (
	"container/list"
	"context"
	"slices"
	"strings"
	"sync"
)

// shared remembers renders by what they were made of, so that Releases with the same
// inputs share one, and keeps them from being made side by side.
//
// Of one static input it knows which facts its renders read. To find a render for
// another Release, its values of those facts are all that is looked at.
type shared struct {
	mu      sync.Mutex
	most    int
	statics map[string]*readSets          // by tenant and static hash
	renders map[string]*list.Element      // by tenant and inputs hash
	order   *list.List                    // the longest unused last
	entries map[*list.Element]*remembered // of order
	flights map[string]*flight
}

// readSets are the sets of facts that renders of one static input read.
type readSets struct {
	sets    [][]string
	renders int
}

type remembered struct {
	key, static string
	result      Result
}

// flight is a render that is being made.
type flight struct {
	done chan struct{}
	// result, or err, and the inputs that they are of; set before done is closed.
	result Result
	err    error
	reads  []string
	hash   string
}

func newShared(most int) *shared {
	return &shared{most: most, statics: map[string]*readSets{}, renders: map[string]*list.Element{}, order: list.New(), entries: map[*list.Element]*remembered{}, flights: map[string]*flight{}}
}

// find gives a render with the same inputs. hash gives the hash for a set of facts.
func (s *shared) find(ctx context.Context, tenant, static string, hash func(context.Context, []string) (string, error)) (Result, bool, error) {
	for _, reads := range s.readSets(tenant, static) {
		key, err := hash(ctx, reads)
		if err != nil {
			return Result{}, false, err
		}
		s.mu.Lock()
		element := s.renders[tenant+"\x00"+key]
		if element != nil {
			s.order.MoveToFront(element)
			result := s.entries[element].result
			s.mu.Unlock()
			return result, true, nil
		}
		s.mu.Unlock()
	}
	return Result{}, false, nil
}

func (s *shared) readSets(tenant, static string) [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.statics[tenant+"\x00"+static]
	if known == nil {
		return nil
	}
	return slices.Clone(known.sets)
}

// keep remembers a render.
func (s *shared) keep(tenant, static string, result Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, static := tenant+"\x00"+result.InputsHash, tenant+"\x00"+static
	if element := s.renders[key]; element != nil {
		s.dropLocked(element)
	}
	known := s.statics[static]
	if known == nil {
		known = &readSets{}
		s.statics[static] = known
	}
	same := func(set []string) bool { return slices.Equal(set, result.Reads) }
	if i := slices.IndexFunc(known.sets, same); i >= 0 {
		known.sets = slices.Delete(known.sets, i, i+1)
	}
	known.sets = slices.Insert(known.sets, 0, result.Reads) // the newest is the likeliest
	known.sets = known.sets[:min(len(known.sets), maxReadSets)]
	known.renders++
	element := s.order.PushFront(nil)
	s.renders[key], s.entries[element] = element, &remembered{key: key, static: static, result: result}
	for s.order.Len() > s.most {
		s.dropLocked(s.order.Back())
	}
}

// forget drops a render whose blobs are gone.
func (s *shared) forget(tenant string, result Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if element := s.renders[tenant+"\x00"+result.InputsHash]; element != nil {
		s.dropLocked(element)
	}
}

func (s *shared) dropLocked(element *list.Element) {
	old := s.entries[element]
	s.order.Remove(element)
	delete(s.entries, element)
	delete(s.renders, old.key)
	if known := s.statics[old.static]; known != nil {
		if known.renders--; known.renders == 0 {
			delete(s.statics, old.static)
		}
	}
}

// paths that renders of a static input were made of, beyond those that a job names.
func pathsOf(sets [][]string, prefix string) []string {
	var paths []string
	for _, set := range sets {
		for _, name := range set {
			if place, ok := strings.CutPrefix(name, prefix); ok {
				paths = append(paths, place)
			}
		}
	}
	return paths
}

// begin gives the flight of a key, and whether the caller is the one who makes it.
func (s *shared) begin(key string) (*flight, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.flights[key]; f != nil {
		return f, false
	}
	f := &flight{done: make(chan struct{})}
	s.flights[key] = f
	return f, true
}

func (s *shared) end(key string, f *flight) {
	s.mu.Lock()
	delete(s.flights, key)
	s.mu.Unlock()
	close(f.done)
}
