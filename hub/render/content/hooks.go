// SPDX-License-Identifier: Apache-2.0

package content

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
)

// Phases of hooks, as the annotation convoy.kumodo.io/hook names them.
const (
	hookPreSync  = "PreSync"
	hookPostSync = "PostSync"
)

// hooks gives hooks their place among the waves. A hook before the sync goes into a
// wave before all others, one after it into a wave after; among each other they keep
// the order that they have. Hooks of other phases are not part of what is applied.
//
// They are applied as any object is, until the engine runs hooks by itself.
func (r *renderer) hooks() error {
	var before, after []int32 // the waves that hooks name, which order them
	low, high := int32(0), int32(0)
	kept := r.set.Objects[:0]
	left := map[string]int{}
	for _, object := range r.set.Objects {
		switch phase := hookPhase(&object); phase {
		case "":
			low, high = min(low, object.Wave), max(high, object.Wave)
		case hookPreSync:
			before = append(before, object.Wave)
		case hookPostSync:
			after = append(after, object.Wave)
		default:
			left[phase]++
			r.unhooked++
			continue
		}
		kept = append(kept, object)
	}
	r.set.Objects = kept
	for _, phase := range sortedKeys(left) {
		r.result.Warnings = append(r.result.Warnings, fmt.Sprintf("%d hooks for %s are left out: they are not run yet", left[phase], phase))
	}
	before, after = distinct(before), distinct(after)
	if int64(low)-int64(len(before)) < math.MinInt32 || int64(high)+int64(len(after)) > math.MaxInt32 {
		return fmt.Errorf("%w: there is no wave left before or after all others", ErrHook)
	}
	for i := range r.set.Objects {
		object := &r.set.Objects[i]
		switch hookPhase(object) {
		case hookPreSync:
			setWave(object, low-int32(len(before)-slices.Index(before, object.Wave)))
		case hookPostSync:
			setWave(object, high+1+int32(slices.Index(after, object.Wave)))
		}
	}
	return nil
}

// crdsFirst puts the objects of a chart's crds folder, which stand first in the set,
// into the first wave there is: hooks may need them.
func (r *renderer) crdsFirst() {
	lowest := int32(0)
	for i := range r.set.Objects {
		lowest = min(lowest, r.set.Objects[i].Wave)
	}
	if lowest == 0 {
		return // kind order does the rest
	}
	for i := range r.set.Objects[:r.crds] {
		setWave(&r.set.Objects[i], lowest)
	}
}

// hookPhase is the phase of a hook: the first of several, with those that are applied
// before those that are not; empty for what is no hook.
func hookPhase(object *manifest.Object) string {
	text := annotation(object, v1alpha1.AnnotationHook)
	if text == "" {
		return ""
	}
	phases := strings.Split(text, ",")
	for i, phase := range phases {
		phases[i] = strings.TrimSpace(phase)
	}
	for _, phase := range []string{hookPreSync, hookPostSync} {
		if slices.Contains(phases, phase) {
			return phase
		}
	}
	return phases[0]
}

func annotation(object *manifest.Object, key string) string {
	metadata, ok := object.Content["metadata"].(map[string]any)
	if !ok {
		return ""
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return ""
	}
	text, ok := annotations[key].(string)
	if !ok {
		return ""
	}
	return text
}

// setWave moves an object to another wave. The annotation is what readers go by.
func setWave(object *manifest.Object, wave int32) {
	object.Wave = wave
	metadata, ok := object.Content["metadata"].(map[string]any)
	if !ok {
		return // a hook has annotations
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[v1alpha1.AnnotationSyncWave] = strconv.Itoa(int(wave))
}

func distinct(waves []int32) []int32 {
	slices.Sort(waves)
	return slices.Compact(waves)
}

func sortedKeys(counts map[string]int) []string {
	return slices.Sorted(maps.Keys(counts))
}
