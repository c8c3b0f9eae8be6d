// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
)

// Annotations of Helm that are understood.
const (
	annotationHook         = "helm.sh/hook"
	annotationWeight       = "helm.sh/hook-weight"
	annotationDeletePolicy = "helm.sh/hook-delete-policy"
	annotationKeep         = "helm.sh/resource-policy"
	keep                   = "keep"
)

// Annotations that they are mapped onto.
const (
	mappedHook         = "convoy.kumodo.io/hook"
	mappedDeletePolicy = "convoy.kumodo.io/hook-delete-policy"
)

// phases of Helm's hooks; test hooks have none.
var phases = map[string]string{
	"pre-install": "PreSync", "pre-upgrade": "PreSync",
	"post-install": "PostSync", "post-upgrade": "PostSync",
	"pre-delete": "PreDelete", "post-delete": "PostDelete",
	"pre-rollback": "PreRollback", "post-rollback": "PostRollback",
	"test": "", "test-success": "", "test-failure": "",
}

var deletePolicies = map[string]string{
	"before-hook-creation": "BeforeHookCreation", "hook-succeeded": "HookSucceeded", "hook-failed": "HookFailed",
}

// Objects reads the objects of a render.
//
// Those of crds folders are kept when they leave the render; one that two folders have
// is there once. Hooks get the annotations convoy.kumodo.io/hook, with the phases, and
// convoy.kumodo.io/hook-delete-policy, and their weight as a wave, which orders them
// among each other; Helm's annotations stay. Tests, and hooks of a kind that Helm does
// not know, are left out, as Helm leaves them out of a deployment.
//
// The error, a manifest.Errors, names every fault with file, document and line.
func (r Result) Objects() (crds, objects []manifest.Object, err error) {
	var all manifest.Errors
	seen := map[manifest.Identity]bool{}
	for _, file := range r.CRDs {
		list, err := manifest.Parse(file.Name, file.Data)
		all = join(all, err)
		for _, object := range list {
			if seen[object.Identity] {
				continue
			}
			seen[object.Identity] = true
			annotate(&object, annotationKeep, keep)
			crds = append(crds, object)
		}
	}
	for _, file := range r.Files {
		list, err := manifest.Parse(file.Name, file.Data)
		all = join(all, err)
		for _, object := range list {
			wanted, err := hook(&object)
			if err != nil {
				all = append(all, &manifest.Error{Place: object.Place, Object: object.String(), Err: err})
			}
			if wanted {
				objects = append(objects, object)
			}
		}
	}
	if len(all) > 0 {
		return nil, nil, all
	}
	return crds, objects, nil
}

// LeftOut counts the objects of a render that Objects leaves out, as tests or as hooks
// of a kind that Helm does not know. It reads the render again.
func (r Result) LeftOut() int {
	n := 0
	for _, file := range r.Files {
		list, err := manifest.Parse(file.Name, file.Data)
		if err != nil {
			continue // Objects says so
		}
		for i := range list {
			if wanted, err := hook(&list[i]); err == nil && !wanted {
				n++
			}
		}
	}
	return n
}

// hook maps the annotations of a hook, and says whether the object is deployed.
func hook(object *manifest.Object) (wanted bool, err error) {
	text, ok := annotation(object, annotationHook)
	if !ok {
		return true, nil
	}
	var mapped []string
	for event := range strings.SplitSeq(text, ",") {
		phase, known := phases[strings.ToLower(strings.TrimSpace(event))]
		if !known {
			return false, nil
		}
		if phase != "" && !slices.Contains(mapped, phase) {
			mapped = append(mapped, phase)
		}
	}
	if len(mapped) == 0 {
		return false, nil
	}
	annotate(object, mappedHook, strings.Join(mapped, ","))
	policies, err := deletePolicy(object)
	if err != nil {
		return true, err
	}
	annotate(object, mappedDeletePolicy, policies)
	return true, weigh(object)
}

// deletePolicy is what becomes of a hook's object; as in Helm, one that says nothing
// goes before it is made anew.
func deletePolicy(object *manifest.Object) (string, error) {
	text, ok := annotation(object, annotationDeletePolicy)
	if !ok {
		return deletePolicies["before-hook-creation"], nil
	}
	var mapped []string
	for policy := range strings.SplitSeq(text, ",") {
		name, known := deletePolicies[strings.ToLower(strings.TrimSpace(policy))]
		if !known {
			return "", fmt.Errorf("%w: annotation %s must list before-hook-creation, hook-succeeded or hook-failed", ErrHook, annotationDeletePolicy)
		}
		if !slices.Contains(mapped, name) {
			mapped = append(mapped, name)
		}
	}
	return strings.Join(mapped, ","), nil
}

// weigh makes a hook's weight its wave, unless it names a wave by itself. As in Helm,
// a weight that is no number is 0.
func weigh(object *manifest.Object) error {
	for _, key := range []string{v1alpha1.AnnotationSyncWave, v1alpha1.AnnotationArgoSyncWave} {
		if _, named := annotation(object, key); named {
			return nil
		}
	}
	text, ok := annotation(object, annotationWeight)
	if !ok {
		return nil
	}
	weight, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("%w: annotation %s is out of range", ErrHook, annotationWeight)
	case err != nil:
		return nil // what is no number weighs nothing
	}
	object.Wave = int32(weight)
	annotate(object, v1alpha1.AnnotationSyncWave, strconv.FormatInt(weight, 10))
	return nil
}

func annotation(object *manifest.Object, key string) (string, bool) {
	metadata, ok := object.Content["metadata"].(map[string]any)
	if !ok {
		return "", false
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return "", false
	}
	text, ok := annotations[key].(string)
	return text, ok
}

func annotate(object *manifest.Object, key, value string) {
	metadata, ok := object.Content["metadata"].(map[string]any)
	if !ok {
		return // manifest.Parse gives none without
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[key] = value
}

// join collects the faults of several files in one list.
func join(all manifest.Errors, err error) manifest.Errors {
	var list manifest.Errors
	switch {
	case errors.As(err, &list):
		return append(all, list...)
	case err != nil:
		return append(all, err)
	}
	return all
}
