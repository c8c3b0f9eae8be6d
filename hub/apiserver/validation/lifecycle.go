// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// lifecycle checks the hooks of a Release. Their templates are read when they are
// rendered, with an error that names hook and field.
func lifecycle(l *v1alpha1.Lifecycle, p *field.Path) field.ErrorList {
	hooks := p.Child("hooks")
	var errs field.ErrorList
	if n := len(l.Hooks); n > MaxHooks {
		errs = append(errs, field.TooMany(hooks, n, MaxHooks))
	}
	names := sets.New[string]()
	total := 0
	for i := range l.Hooks {
		h, at := &l.Hooks[i], hooks.Index(i)
		errs = append(errs, requiredName(h.Name, at.Child("name"), apivalidation.NameIsDNSLabel)...)
		if names.Has(h.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), h.Name))
		}
		names.Insert(h.Name)
		errs = append(errs, hook(h, at)...)
		total += len(h.Object.Raw)
	}
	if total > MaxHookObjects {
		errs = append(errs, field.Invalid(hooks, fmt.Sprintf("%d bytes", total), fmt.Sprintf("the objects may have %d bytes together", MaxHookObjects)))
	}
	return errs
}

func hook(h *v1alpha1.Hook, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	on := p.Child("phases")
	if len(h.Phases) == 0 {
		errs = append(errs, field.Required(on, "when it runs: PreSync, PostSync, SyncFailed, PreDelete, PostDelete"))
	}
	phases := sets.New[v1alpha1.HookPhase]()
	for i, phase := range h.Phases {
		errs = append(errs, enum(phase, on.Index(i), v1alpha1.HookPreSync, v1alpha1.HookPostSync, v1alpha1.HookSyncFailed, v1alpha1.HookPreDelete, v1alpha1.HookPostDelete)...)
		if phases.Has(phase) {
			errs = append(errs, field.Duplicate(on.Index(i), phase))
		}
		phases.Insert(phase)
	}
	policies := sets.New[v1alpha1.HookDeletePolicy]()
	for i, policy := range h.DeletePolicy {
		at := p.Child("deletePolicy").Index(i)
		errs = append(errs, enum(policy, at, v1alpha1.HookBeforeCreation, v1alpha1.HookSucceeded, v1alpha1.HookFailed)...)
		if policies.Has(policy) {
			errs = append(errs, field.Duplicate(at, policy))
		}
		policies.Insert(policy)
	}
	if h.Timeout != nil {
		at := p.Child("timeout")
		errs = append(errs, duration(h.Timeout, at, MinReleaseTimeout, MaxTimeout)...)
		if h.Timeout.Duration%time.Second != 0 {
			errs = append(errs, field.Invalid(at, h.Timeout.Duration.String(), "must be whole seconds"))
		}
	}
	return append(errs, hookObject(h.Object.Raw, p.Child("object"))...)
}

// hookObject checks what has to be known of the object before it is rendered.
func hookObject(raw []byte, p *field.Path) field.ErrorList {
	if len(raw) == 0 || string(raw) == "null" {
		return field.ErrorList{field.Required(p, "the object that is made")}
	}
	if len(raw) > MaxHookObject {
		return field.ErrorList{field.TooLong(p, "", MaxHookObject)}
	}
	var object struct {
		APIVersion any `json:"apiVersion"`
		Kind       any `json:"kind"`
		Metadata   struct {
			Name         any            `json:"name"`
			GenerateName any            `json:"generateName"`
			Labels       map[string]any `json:"labels"`
			Annotations  map[string]any `json:"annotations"`
		} `json:"metadata"`
	}
	// What is no object is named in words of the user, not by what it was read into.
	if errs := notObjects(raw, p); len(errs) > 0 {
		return errs
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return field.ErrorList{field.Invalid(p, field.OmitValueType{}, "cannot be read as JSON")}
	}
	var errs field.ErrorList
	if kind, ok := object.Kind.(string); ok && strings.HasSuffix(kind, "List") {
		errs = append(errs, field.Invalid(p.Child("kind"), kind, "must be one object: give each object of a list a hook of its own"))
	}
	meta := p.Child("metadata")
	for _, f := range []struct {
		at    *field.Path
		value any
		plain bool
	}{{p.Child("apiVersion"), object.APIVersion, true}, {p.Child("kind"), object.Kind, true}, {meta.Child("name"), object.Metadata.Name, false}} {
		switch text, ok := f.value.(string); {
		case f.value == nil, ok && text == "":
			errs = append(errs, field.Required(f.at, ""))
		case !ok:
			errs = append(errs, field.Invalid(f.at, f.value, "must be text"))
		case f.plain && strings.Contains(text, templateStart):
			errs = append(errs, field.Forbidden(f.at, "must not be a template"))
		}
	}
	if object.Metadata.GenerateName != nil {
		errs = append(errs, field.Forbidden(meta.Child("generateName"), "a hook needs a name, to be found again"))
	}
	if _, there := object.Metadata.Labels[v1alpha1.LabelManaged]; there {
		errs = append(errs, field.Forbidden(meta.Child("labels").Key(v1alpha1.LabelManaged), "written by convoy alone"))
	}
	for _, key := range sets.List(sets.KeySet(object.Metadata.Annotations)) {
		if why := barredOfHooks(key); why != "" {
			errs = append(errs, field.Forbidden(meta.Child("annotations").Key(key), why))
		}
	}
	return errs
}

// notObjects names what of the object of a hook has to be a map and is not.
func notObjects(raw []byte, p *field.Path) field.ErrorList {
	const must = "must be an object"
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(raw, &whole); err != nil {
		return field.ErrorList{field.Invalid(p, field.OmitValueType{}, must)}
	}
	meta := p.Child("metadata")
	var metadata map[string]json.RawMessage
	if text := whole["metadata"]; len(text) > 0 && json.Unmarshal(text, &metadata) != nil {
		return field.ErrorList{field.Invalid(meta, field.OmitValueType{}, must)}
	}
	var errs field.ErrorList
	for _, name := range []string{"labels", "annotations"} {
		var entries map[string]json.RawMessage
		if text := metadata[name]; len(text) > 0 && json.Unmarshal(text, &entries) != nil {
			errs = append(errs, field.Invalid(meta.Child(name), field.OmitValueType{}, must))
		}
	}
	return errs
}

// barredOfHooks says why the object of a hook must not have an annotation.
func barredOfHooks(key string) string {
	domain, name, _ := strings.Cut(key, "/")
	switch {
	case key == v1alpha1.AnnotationPrune:
		return ""
	case key == v1alpha1.AnnotationOwner:
		return "written by convoy alone"
	case domain == "convoy.kumodo.io", domain == "argocd.argoproj.io" && (strings.HasPrefix(name, "hook") || name == "sync-wave"), domain == "helm.sh" && strings.HasPrefix(name, "hook"):
		return "said by the fields phases, wave, deletePolicy and timeout of the hook"
	}
	return ""
}

// ReleaseLifecycle checks a new spec.lifecycle of the named Release, and drops what only
// an answer has.
func ReleaseLifecycle(l *v1alpha1.ReleaseLifecycle, release string) field.ErrorList {
	l.Runs = nil
	errs := requestName(l.Name, release, "Release")
	if l.Request != nil {
		errs = append(errs, field.Forbidden(field.NewPath("request"), "asked for with POST; PUT and PATCH change spec"))
	}
	return append(errs, lifecycle(&l.Spec, field.NewPath("spec"))...)
}

// HookRequest checks what is asked of a run of a hook of the named Release, and drops what
// is no part of that.
func HookRequest(l *v1alpha1.ReleaseLifecycle, release string) field.ErrorList {
	l.Runs = nil
	errs := requestName(l.Name, release, "Release")
	p := field.NewPath("request")
	if len(l.Spec.Hooks) > 0 {
		errs = append(errs, field.Forbidden(field.NewPath("spec"), "changed with PUT; POST asks for something about a run"))
	}
	if l.Request == nil {
		return append(errs, field.Required(p, "hook, run and action"))
	}
	for _, f := range []struct{ name, value string }{{"hook", l.Request.Hook}, {"run", l.Request.Run}} {
		switch {
		case f.value == "":
			errs = append(errs, field.Required(p.Child(f.name), "as in runs"))
		case len(f.value) > MaxHookWord:
			errs = append(errs, field.TooLong(p.Child(f.name), "", MaxHookWord))
		}
	}
	return append(errs, enum(l.Request.Action, p.Child("action"), v1alpha1.HookRetry, v1alpha1.HookSkip, v1alpha1.HookAbort)...)
}
