// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/content"
	"kumodo.io/convoy/hub/source"
)

// reader reads what a Release refers to, each object once.
type reader struct {
	texts   Texts
	release *corev1alpha1.Release
	cluster map[string]string
	read    map[[2]string]map[string]string
}

// values are those of the spec, in the order of their weight.
func (r *reader) values(ctx context.Context) ([]content.Values, error) {
	helm := r.release.Spec.Content.Helm
	if helm == nil {
		return nil, nil
	}
	var list []content.Values
	for i := range helm.ValuesFrom {
		from := &helm.ValuesFrom[i]
		key := from.Key
		if key == "" {
			key = corev1alpha1.DefaultValuesKey
		}
		text, err := r.text(ctx, from.Kind, from.Name, key)
		if from.Optional && errors.Is(err, ErrNotThere) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, content.Values{
			Origin: fmt.Sprintf("%s %s, key %s", from.Kind, from.Name, key), Text: text,
			TargetPath: from.TargetPath, Secret: from.Kind == corev1alpha1.ReferenceSecret,
		})
	}
	if helm.Values != nil && len(helm.Values.Raw) > 0 {
		list = append(list, content.Values{Origin: "spec.content.helm.values", Text: string(helm.Values.Raw)})
	}
	return list, nil
}

// mutations are those of the spec with the bodies that stand elsewhere; those in the
// source are read where the render is made.
func (r *reader) mutations(ctx context.Context) ([]content.Mutation, error) {
	var list []content.Mutation
	for i := range r.release.Spec.Mutations {
		m := &r.release.Spec.Mutations[i]
		one := content.Mutation{Name: m.Name, If: m.If, Type: m.Type, Target: m.Target, Bodies: m.Inline}
		if one.Name == "" {
			one.Name = fmt.Sprintf("mutations[%d]", i)
		}
		if from := m.From; from != nil {
			name, err := r.expand(from.Name)
			if err != nil {
				return nil, fmt.Errorf("mutation %s: from.name: %w", one.Name, err)
			}
			place, err := r.expand(from.Path)
			if err != nil {
				return nil, fmt.Errorf("mutation %s: from.path: %w", one.Name, err)
			}
			switch from.Kind {
			case corev1alpha1.ReferenceSource:
				one.File = place
			default:
				text, err := r.text(ctx, from.Kind, name, place)
				if err != nil {
					return nil, fmt.Errorf("mutation %s: %w", one.Name, err)
				}
				one.Bodies, one.Secret = []string{text}, from.Kind == corev1alpha1.ReferenceSecret
				one.Origin = fmt.Sprintf("%s %s, key %s", from.Kind, name, place)
			}
		}
		list = append(list, one)
	}
	return list, nil
}

// text is one key of a ConfigMap or Secret. A Secret is read only if its use was
// checked when the reference was written.
func (r *reader) text(ctx context.Context, kind, name, key string) (string, error) {
	at := [2]string{kind, name}
	data, done := r.read[at]
	if !done {
		var err error
		switch {
		case r.texts == nil:
			err = source.ErrNoHostCluster
		case kind == corev1alpha1.ReferenceSecret && !slices.Contains(r.release.Status.CheckedSecrets, name):
			err = source.ErrNotChecked
		case kind == corev1alpha1.ReferenceSecret:
			data, err = r.texts.Secret(ctx, r.release.Namespace, name)
		default:
			data, err = r.texts.ConfigMap(ctx, r.release.Namespace, name)
		}
		if err != nil {
			return "", &referenceError{fmt.Errorf("%s %s: %w", orConfigMap(kind), name, err)}
		}
		if r.read == nil {
			r.read = map[[2]string]map[string]string{}
		}
		r.read[at] = data
	}
	text, ok := data[key]
	switch {
	case !ok:
		return "", &referenceError{fmt.Errorf("%s %s: key %s: %w", orConfigMap(kind), name, key, ErrNotThere)}
	case len(text) > maxTextBytes:
		return "", &referenceError{fmt.Errorf("%s %s: key %s: %w", orConfigMap(kind), name, key, errTextTooLarge)}
	}
	return text, nil
}

func orConfigMap(kind string) string {
	if kind == "" {
		return corev1alpha1.ReferenceConfigMap
	}
	return kind
}

// reference is what a template in a name may hold, and nothing else.
var reference = regexp.MustCompile(`\{\{-?\s*\.cluster\.([A-Za-z0-9_./-]+?)\s*-?\}\}`)

// expand puts the keys of the Cluster into a name. The result, not the template, is an
// input of the render.
func (r *reader) expand(text string) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	var missing error
	out := reference.ReplaceAllStringFunc(text, func(found string) string {
		key := reference.FindStringSubmatch(found)[1]
		value, ok := r.cluster[key]
		if !ok {
			missing = &referenceError{fmt.Errorf("cluster.%s: %w", key, errNoKey)}
		}
		return value
	})
	if missing == nil && strings.Contains(out, "{{") {
		return "", &referenceError{errTemplate}
	}
	return out, missing
}
