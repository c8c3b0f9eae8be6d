// SPDX-License-Identifier: Apache-2.0

package content

import (
	"fmt"
	"strconv"
	"strings"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/mutate"
	"kumodo.io/convoy/pkg/manifest"
)

// Hook is one of spec.lifecycle.
type Hook struct {
	Name   string   `json:"name"`
	Phases []string `json:"phases"`
	Wave   int32    `json:"wave,omitempty"`
	// Object in JSON. Its texts may be templates.
	Object       string   `json:"object"`
	DeletePolicy []string `json:"deletePolicy,omitempty"`
	// Seconds that one run may take, 0: as long as the sync.
	Seconds int64 `json:"seconds,omitempty"`
}

// LifecycleHooks are those of a Release, for a Job.
func LifecycleHooks(lifecycle *v1alpha1.Lifecycle) []Hook {
	var list []Hook
	for i := range lifecycle.Hooks {
		in := &lifecycle.Hooks[i]
		hook := Hook{Name: in.Name, Wave: in.Wave, Object: string(in.Object.Raw)}
		for _, phase := range in.Phases {
			hook.Phases = append(hook.Phases, string(phase))
		}
		for _, policy := range in.DeletePolicy {
			hook.DeletePolicy = append(hook.DeletePolicy, string(policy))
		}
		if in.Timeout != nil {
			hook.Seconds = int64(in.Timeout.Seconds())
		}
		list = append(list, hook)
	}
	return list
}

// lifecyclePlace is where objects of hooks of the Release stand, for messages.
const lifecyclePlace = "spec.lifecycle.hooks"

// lifecycle adds the hooks of the Release itself, after the mutations: those are about
// what the source has.
func (r *renderer) lifecycle() error {
	var faults manifest.Errors
	for i := range r.job.Hooks {
		hook := &r.job.Hooks[i]
		object, err := r.lifecycleHook(hook)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s[%d] (%s): %w", lifecyclePlace, i, hook.Name, err))
			continue
		}
		r.set.Objects = append(r.set.Objects, object)
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

func (r *renderer) lifecycleHook(hook *Hook) (manifest.Object, error) {
	content, err := mutate.Fill(hook.Object, r.facts)
	if err != nil {
		return manifest.Object{}, err
	}
	object, err := manifest.FromContent(content, manifest.Place{File: lifecyclePlace})
	if err != nil {
		return manifest.Object{}, err
	}
	annotate(&object, v1alpha1.AnnotationHook, strings.Join(hook.Phases, ","))
	annotate(&object, v1alpha1.AnnotationHookName, hook.Name)
	if len(hook.DeletePolicy) > 0 {
		annotate(&object, v1alpha1.AnnotationHookDeletePolicy, strings.Join(hook.DeletePolicy, ","))
	}
	if hook.Seconds > 0 {
		annotate(&object, v1alpha1.AnnotationHookTimeout, strconv.FormatInt(hook.Seconds, 10))
	}
	object.Wave = hook.Wave
	return object, nil
}
