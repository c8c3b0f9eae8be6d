// SPDX-License-Identifier: Apache-2.0

package content

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/helm"
	"kumodo.io/convoy/pkg/manifest"
)

// hooks brings all hooks into one form, that of convoy's annotations: those of Helm, of
// Argo CD, and those that the content writes itself. Their waves stay as they are written,
// and order them among the hooks of their phase. Where several are given convoy's own win,
// then, in a chart, Helm's, then those of Argo CD, then Helm's.
//
// Tests, and hooks of phases that there are not here, are left out.
func (r *renderer) hooks() error {
	var faults manifest.Errors
	kept := r.set.Objects[:0]
	left := map[string]int{}
	for i, object := range r.set.Objects {
		if i < r.crds {
			kept = append(kept, object) // none of them is a hook, whatever it says
			continue
		}
		why, err := r.hook(&object)
		switch {
		case err != nil:
			faults = append(faults, &manifest.Error{Place: object.Place, Object: object.String(), Err: err})
		case why != "":
			left[why]++
			r.unhooked++
			continue
		case isHook(&object):
			r.result.Hooks++
		}
		kept = append(kept, object)
	}
	r.set.Objects = kept
	for _, why := range slices.Sorted(maps.Keys(left)) {
		r.warn("%d objects are left out: %s", left[why], why)
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

func (r *renderer) warn(format string, args ...any) {
	r.result.Warnings = append(r.result.Warnings, fmt.Sprintf(format, args...))
}

// Why objects are left out.
const (
	whyTest     = "tests of Helm"
	whySkip     = "hooks of Argo CD that say Skip"
	whyRollback = "hooks of rollbacks, since a rollback is a sync like any other"
)

// hook brings one object into the form. why is not empty when it is left out.
func (r *renderer) hook(object *manifest.Object) (why string, err error) {
	if object.Place.File != lifecyclePlace {
		if text := annotation(object, v1alpha1.AnnotationHookName); text != "" {
			return "", fmt.Errorf("%w: annotation %s is written by convoy, for hooks of spec.lifecycle", ErrHook, v1alpha1.AnnotationHookName)
		}
	}
	if why, err = argoHook(object); why != "" || err != nil {
		return why, err
	}
	role, err := helm.MarkHook(object)
	if err != nil {
		return "", err
	}
	switch role {
	case helm.Deployed:
	case helm.Test:
		return whyTest, nil
	case helm.Unknown:
		r.warn("%s has an annotation helm.sh/hook that Helm does not know, and is applied as any other object", object.Identity)
		return "", nil
	}
	return r.form(object)
}

// phases of hooks, as the annotation names them. Those of an installation and of an
// upgrade are told apart where a render is applied.
var phases = []string{
	string(v1alpha1.HookPreSync), preInstall, preUpgrade, string(v1alpha1.HookPostSync), postInstall, postUpgrade,
	string(v1alpha1.HookSyncFailed), string(v1alpha1.HookPreDelete), string(v1alpha1.HookPostDelete),
}

const (
	preInstall  = "PreInstall"
	preUpgrade  = "PreUpgrade"
	postInstall = "PostInstall"
	postUpgrade = "PostUpgrade"
)

// both of a pair are one phase.
var both = []struct{ install, upgrade, always string }{
	{preInstall, preUpgrade, string(v1alpha1.HookPreSync)}, {postInstall, postUpgrade, string(v1alpha1.HookPostSync)},
}

// form writes the annotations of a hook in one way.
func (r *renderer) form(object *manifest.Object) (why string, err error) {
	if !isHook(object) {
		return "", nil
	}
	list, err := words(object, v1alpha1.AnnotationHook, append(slices.Clone(phases), helm.PhaseRollback))
	if err != nil {
		return "", err
	}
	if list = slices.DeleteFunc(list, func(phase string) bool { return phase == helm.PhaseRollback }); len(list) == 0 {
		return whyRollback, nil
	}
	for _, pair := range both {
		if slices.Contains(list, pair.always) || slices.Contains(list, pair.install) && slices.Contains(list, pair.upgrade) {
			list = slices.Compact(replace(list, pair.always, pair.install, pair.upgrade, pair.always))
		}
	}
	annotate(object, v1alpha1.AnnotationHook, strings.Join(list, ","))
	policies := []string{string(v1alpha1.HookBeforeCreation)}
	if annotation(object, v1alpha1.AnnotationHookDeletePolicy) != "" {
		if policies, err = words(object, v1alpha1.AnnotationHookDeletePolicy, deletePolicies); err != nil {
			return "", err
		}
	}
	annotate(object, v1alpha1.AnnotationHookDeletePolicy, strings.Join(policies, ","))
	if text := annotation(object, v1alpha1.AnnotationHookTimeout); text != "" {
		if seconds, err := strconv.Atoi(text); err != nil || seconds < 1 || seconds > maxHookSeconds {
			return "", fmt.Errorf("%w: annotation %s must be a whole number of seconds from 1 to %d, in quotes", ErrHook, v1alpha1.AnnotationHookTimeout, maxHookSeconds)
		}
	}
	if object.Wave != 0 {
		setWave(object, object.Wave)
	}
	return "", nil
}

// replace puts one word in the place of the first of some, and takes the others out.
func replace(list []string, with string, these ...string) []string {
	done := false
	out := make([]string, 0, len(list))
	for _, word := range list {
		switch {
		case !slices.Contains(these, word):
			out = append(out, word)
		case !done:
			out, done = append(out, with), true
		}
	}
	return out
}

var deletePolicies = []string{string(v1alpha1.HookBeforeCreation), string(v1alpha1.HookSucceeded), string(v1alpha1.HookFailed)}

// words of an annotation that is a list of some, each once.
func words(object *manifest.Object, key string, known []string) ([]string, error) {
	var list []string
	for word := range strings.SplitSeq(annotation(object, key), ",") {
		word = strings.TrimSpace(word)
		if !slices.Contains(known, word) {
			return nil, fmt.Errorf("%w: annotation %s must list %s", ErrHook, key, strings.Join(known, ", "))
		}
		if !slices.Contains(list, word) {
			list = append(list, word)
		}
	}
	return list, nil
}

// crdsFirst puts the objects of a chart's crds folder, which stand first in the set,
// into the first wave there is.
func (r *renderer) crdsFirst() {
	lowest := int32(0)
	for i := range r.set.Objects {
		if object := &r.set.Objects[i]; i < r.crds || !isHook(object) {
			lowest = min(lowest, object.Wave)
		}
	}
	if lowest == 0 {
		return // kind order does the rest
	}
	for i := range r.set.Objects[:r.crds] {
		setWave(&r.set.Objects[i], lowest)
	}
}

// isHook: it has the annotation, be it empty.
func isHook(object *manifest.Object) bool {
	_, there := annotations(object)[v1alpha1.AnnotationHook]
	return there
}

func annotations(object *manifest.Object) map[string]any {
	metadata, ok := object.Content["metadata"].(map[string]any)
	if !ok {
		return nil
	}
	all, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return nil
	}
	return all
}

func annotation(object *manifest.Object, key string) string {
	text, ok := annotations(object)[key].(string)
	if !ok {
		return ""
	}
	return text
}

func annotate(object *manifest.Object, key, value string) {
	metadata, ok := object.Content["metadata"].(map[string]any)
	if !ok {
		return // manifest.Parse gives none without
	}
	all, ok := metadata["annotations"].(map[string]any)
	if !ok {
		all = map[string]any{}
		metadata["annotations"] = all
	}
	all[key] = value
}

// setWave moves an object to another wave. The annotation is what readers go by.
func setWave(object *manifest.Object, wave int32) {
	object.Wave = wave
	annotate(object, v1alpha1.AnnotationSyncWave, strconv.Itoa(int(wave)))
}
