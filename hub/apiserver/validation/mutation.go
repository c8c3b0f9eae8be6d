// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// templateStart begins a template in the name or path of a mutation's source.
const templateStart = "{{"

// mutations checks a list. Expressions and bodies are read where they are used,
// with an error that names mutation and object.
func mutations(list []v1alpha1.Mutation, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(list); n > MaxMutations {
		errs = append(errs, field.TooMany(p, n, MaxMutations))
	}
	total := 0
	for i := range list {
		errs = append(errs, mutation(&list[i], p.Index(i))...)
		for _, body := range list[i].Inline {
			total += len(body)
		}
	}
	if total > MaxMutationBodies {
		errs = append(errs, field.Invalid(p, fmt.Sprintf("%d bytes", total), fmt.Sprintf("the inline bodies may have %d bytes together", MaxMutationBodies)))
	}
	return errs
}

func mutation(m *v1alpha1.Mutation, p *field.Path) field.ErrorList {
	errs := enum(m.Type, p.Child("type"), v1alpha1.MutationGoTemplate, v1alpha1.MutationJSONPatch, v1alpha1.MutationMergePatch)
	if len(m.Name) > MaxMutationName {
		errs = append(errs, field.TooLong(p.Child("name"), "", MaxMutationName))
	}
	if len(m.If) > MaxExpression {
		errs = append(errs, field.TooLong(p.Child("if"), "", MaxExpression))
	}
	if m.Target != nil {
		errs = append(errs, mutationTarget(m.Target, p.Child("target"))...)
	}
	switch {
	case len(m.Inline) == 0 && m.From == nil:
		errs = append(errs, field.Required(p, "one of inline and from"))
	case len(m.Inline) > 0 && m.From != nil:
		errs = append(errs, field.Forbidden(p.Child("from"), "only without inline"))
	case m.From != nil:
		errs = append(errs, mutationSource(m.From, p.Child("from"))...)
	}
	if n := len(m.Inline); n > MaxInlineBodies {
		errs = append(errs, field.TooMany(p.Child("inline"), n, MaxInlineBodies))
	}
	for i, body := range m.Inline {
		at := p.Child("inline").Index(i)
		switch {
		case strings.TrimSpace(body) == "":
			errs = append(errs, field.Required(at, "an empty body changes nothing"))
		case len(body) > MaxMutationBody:
			errs = append(errs, field.TooLong(at, "", MaxMutationBody))
		}
	}
	return errs
}

func mutationTarget(t *v1alpha1.MutationTarget, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct{ name, value string }{{"group", t.Group}, {"kind", t.Kind}, {"namespace", t.Namespace}, {"name", t.Name}} {
		if len(f.value) > MaxTargetText {
			errs = append(errs, field.TooLong(p.Child(f.name), "", MaxTargetText))
		}
	}
	if len(t.LabelSelector) > MaxSelector {
		return append(errs, field.TooLong(p.Child("labelSelector"), "", MaxSelector))
	}
	if _, err := labels.Parse(t.LabelSelector); err != nil {
		errs = append(errs, field.Invalid(p.Child("labelSelector"), t.LabelSelector, err.Error()))
	}
	return errs
}

// mutationSource checks where a body is. A Secret is named in full: whoever writes
// the reference was asked for, by its name.
func mutationSource(s *v1alpha1.MutationSource, p *field.Path) field.ErrorList {
	errs := enum(s.Kind, p.Child("kind"), v1alpha1.ReferenceConfigMap, v1alpha1.ReferenceSecret, v1alpha1.ReferenceSource)
	name, path := p.Child("name"), p.Child("path")
	if s.Kind == v1alpha1.ReferenceSource {
		if s.Name != "" {
			errs = append(errs, field.Forbidden(name, "not with kind Source: the file is in the Release's own source"))
		}
		return append(errs, relativePath(s.Path, path)...)
	}
	switch {
	case s.Kind == v1alpha1.ReferenceSecret && strings.Contains(s.Name, templateStart):
		errs = append(errs, field.Forbidden(name, "the name of a Secret is no template: whoever writes it must be allowed to get that Secret"))
	case strings.Contains(s.Name, templateStart):
		errs = append(errs, templateText(s.Name, name)...)
	default:
		errs = append(errs, requiredName(s.Name, name, apivalidation.NameIsDNSSubdomain)...)
	}
	if strings.Contains(s.Path, templateStart) {
		return append(errs, templateText(s.Path, path)...)
	}
	return append(errs, dataKey(s.Path, path)...)
}

// templateText is checked again when it has become a name.
func templateText(text string, p *field.Path) field.ErrorList {
	if len(text) > MaxPath {
		return field.ErrorList{field.TooLong(p, "", MaxPath)}
	}
	return nil
}
