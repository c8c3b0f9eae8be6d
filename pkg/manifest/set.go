// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"slices"
)

// Set is all objects of one Release.
type Set struct {
	// Namespace that namespaced objects without one go to.
	Namespace string
	Objects   []Object
}

// Arrange puts the objects in apply order and refuses what cannot be one set:
// too many objects, or the same object twice. An object without a namespace is
// the same as one in the Release's namespace.
func (s *Set) Arrange() error {
	if len(s.Objects) > MaxObjects {
		return fmt.Errorf("%w: %d objects, at most %d", ErrTooLarge, len(s.Objects), MaxObjects)
	}
	var faults Errors
	seen := make(map[Identity]*Object, len(s.Objects))
	for i := range s.Objects {
		object := &s.Objects[i]
		id := object.Identity
		if id.Namespace == "" {
			id.Namespace = s.Namespace
		}
		if first, twice := seen[id]; twice {
			faults = append(faults, duplicate(first, object))
			continue
		}
		seen[id] = object
	}
	if err := faults.orNil(); err != nil {
		return err
	}
	slices.SortStableFunc(s.Objects, func(a, b Object) int { return compare(&a, &b) })
	return nil
}

// Header is the first line of the objects layer.
type Header struct {
	Format    string  `json:"format"`
	Count     int     `json:"count"`
	Waves     []int32 `json:"waves"`
	Namespace string  `json:"namespace"`
}

// header describes an arranged set.
func (s *Set) header() Header {
	waves := []int32{}
	for i := range s.Objects {
		if wave := s.Objects[i].Wave; len(waves) == 0 || waves[len(waves)-1] != wave {
			waves = append(waves, wave)
		}
	}
	return Header{Format: FormatObjects, Count: len(s.Objects), Waves: waves, Namespace: s.Namespace}
}
