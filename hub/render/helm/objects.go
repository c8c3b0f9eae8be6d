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

// event of Helm: the phase that it is, and when it is both of an installation and of an
// upgrade, that of all syncs.
type event struct{ phase, always string }

// events of Helm's hooks; tests have no phase.
var events = map[string]event{
	"pre-install": {"PreInstall", "PreSync"}, "pre-upgrade": {"PreUpgrade", "PreSync"},
	"post-install": {"PostInstall", "PostSync"}, "post-upgrade": {"PostUpgrade", "PostSync"},
	"pre-delete": {phase: "PreDelete"}, "post-delete": {phase: "PostDelete"},
	"pre-rollback": {phase: PhaseRollback}, "post-rollback": {phase: PhaseRollback},
	"test": {}, "test-success": {}, "test-failure": {},
}

// PhaseRollback stands for hooks of rollbacks, which convoy has none of: a rollback is a
// sync like any other.
const PhaseRollback = "Rollback"

var deletePolicies = map[string]string{
	"before-hook-creation": "BeforeHookCreation", "hook-succeeded": "HookSucceeded", "hook-failed": "HookFailed",
}

// Objects reads the objects of a render.
//
// Those of crds folders are kept when they leave the render; one that two folders have
// is there once. Hooks are marked as MarkHook does. Tests, and hooks of a kind that Helm
// does not know, are left out, as Helm leaves them out of a deployment.
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
			role, err := MarkHook(&object)
			if err != nil {
				all = append(all, &manifest.Error{Place: object.Place, Object: object.String(), Err: err})
			}
			if role == Deployed {
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
			if role, err := MarkHook(&list[i]); err == nil && role != Deployed {
				n++
			}
		}
	}
	return n
}

// Role of an object in a deployment.
type Role int

// Roles: Test and Unknown (a hook with an event that Helm does not know) are not part of
// a deployment by Helm.
const (
	Deployed Role = iota
	Test
	Unknown
)

// MarkHook gives an object that is one of Helm's hooks the annotations
// convoy.kumodo.io/hook, with its phases, and convoy.kumodo.io/hook-delete-policy, and
// its weight as a wave, which orders it among the hooks of a phase. Helm's annotations
// stay. One that is marked already is left as it is.
func MarkHook(object *manifest.Object) (Role, error) {
	text, ok := annotation(object, annotationHook)
	if !ok {
		return Deployed, nil
	}
	if _, marked := annotation(object, v1alpha1.AnnotationHook); marked {
		return Deployed, nil
	}
	phases, known := phasesOf(text)
	switch {
	case !known:
		return Unknown, nil
	case len(phases) == 0:
		return Test, nil
	}
	annotate(object, v1alpha1.AnnotationHook, strings.Join(phases, ","))
	policies, err := deletePolicy(object)
	if err != nil {
		return Deployed, err
	}
	annotate(object, v1alpha1.AnnotationHookDeletePolicy, policies)
	return Deployed, weigh(object)
}

// phasesOf a list of events, each once, in the order in which they are first named. known
// is false when Helm does not know one.
func phasesOf(text string) (phases []string, known bool) {
	var given []event
	for word := range strings.SplitSeq(text, ",") {
		e, ok := events[strings.ToLower(strings.TrimSpace(word))]
		if !ok {
			return nil, false
		}
		if e.phase != "" && !slices.Contains(given, e) {
			given = append(given, e)
		}
	}
	for _, e := range given {
		phase := e.phase
		// That of an installation and that of an upgrade are both of one sync or another.
		if e.always != "" && slices.ContainsFunc(given, func(other event) bool { return other.always == e.always && other != e }) {
			phase = e.always
		}
		if !slices.Contains(phases, phase) {
			phases = append(phases, phase)
		}
	}
	return phases, true
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
