// SPDX-License-Identifier: Apache-2.0

package release

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// waiters are Releases that wait for another, by the key of that. All of it can be
// lost: those that wait are looked at again at their interval.
type waiters struct {
	mu sync.Mutex
	by map[types.NamespacedName]map[types.NamespacedName]struct{}
}

func (w *waiters) add(blocker, waiter types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = map[types.NamespacedName]map[types.NamespacedName]struct{}{}
	}
	if w.by[blocker] == nil {
		w.by[blocker] = map[types.NamespacedName]struct{}{}
	}
	w.by[blocker][waiter] = struct{}{}
}

// any says whether somebody waits for a Release.
func (w *waiters) any(blocker types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.by[blocker]) > 0
}

// take gives the Releases that wait for one, and forgets them: those that still have to
// wait say so again.
func (w *waiters) take(blocker types.NamespacedName) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []types.NamespacedName
	for waiter := range w.by[blocker] {
		out = append(out, waiter)
	}
	delete(w.by, blocker)
	return out
}

// seen is what a Release was looked at last with, to the end.
type seen struct {
	uid        types.UID
	generation int64
	revision   string
}

// sightings are what each Release was looked at with.
type sightings struct {
	mu sync.Mutex
	by map[types.NamespacedName]seen
}

func (s *sightings) has(key types.NamespacedName, what seen) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[key] == what
}

// put says whether that is new.
func (s *sightings) put(key types.NamespacedName, what seen) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[types.NamespacedName]seen{}
	}
	if s.by[key] == what {
		return false
	}
	s.by[key] = what
	return true
}

func (s *sightings) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by, key)
}

// wake enqueues those who wait for a Release, somewhat later: many become ready
// together.
func (r *Reconciler) wake(key types.NamespacedName) {
	for _, waiter := range r.waiters.take(key) {
		r.AddAfter(waiter, wakePause)
	}
}
