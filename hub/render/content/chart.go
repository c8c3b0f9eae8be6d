// SPDX-License-Identifier: Apache-2.0

package content

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/render/helm"
	"kumodo.io/convoy/pkg/manifest"
)

// chart renders a chart and reads what its templates gave.
func (r *renderer) chart(place string) error {
	options := r.job.Content.Helm
	if options == nil {
		options = &v1alpha1.HelmContent{} // found by its Chart.yaml
	}
	var values []map[string]any
	for _, text := range r.job.Values {
		one, err := decode(text)
		if err != nil {
			return err
		}
		values = append(values, one)
	}
	name := options.ReleaseName
	if name == "" {
		// Always there.
		name, _ = r.facts.Read(facts.SelfReleaseName)
	}
	r.begin(place)
	rendered, err := helm.Render(helm.Options{
		Tree: r.tree, Path: place, ReleaseName: name, Namespace: r.job.Namespace,
		ValuesFiles: options.ValuesFiles, Values: values, Secrets: r.secrets(),
		SkipCRDs: options.CRDs == v1alpha1.CRDsSkip, SkipSchema: options.SkipSchemaValidation, Facts: r.facts,
	})
	if r.job.AskCharts && errors.Is(err, helm.ErrDependency) {
		r.result.Needs.Charts = true
		return ErrIncomplete
	}
	if err != nil {
		return err
	}
	r.result.Chart, r.result.ChartVersion, r.result.AppVersion = rendered.Chart, rendered.Version, rendered.AppVersion
	r.result.Warnings = append(r.result.Warnings, rendered.Warnings...)
	crds, objects, err := rendered.Objects()
	if err != nil {
		return r.withoutKeys(err)
	}
	r.set = &manifest.Set{Objects: append(crds, objects...)}
	r.crds = len(crds)
	if len(r.set.Objects) == 0 {
		r.unhooked = rendered.LeftOut()
	}
	return nil
}

// withoutKeys takes the paths out of faults of rendered texts where values came out of
// Secrets: a template may have made a key of one, in a form that nobody finds again.
// File, document, line and object stay.
func (r *renderer) withoutKeys(err error) error {
	var all manifest.Errors
	if len(r.secrets()) == 0 || !errors.As(err, &all) {
		return err
	}
	hushed := make(manifest.Errors, len(all))
	for i, one := range all {
		hushed[i] = one
		var fault *manifest.Error
		if errors.As(one, &fault) {
			hushed[i] = &manifest.Error{Place: fault.Place, Object: fault.Object, Err: fault.Err}
		}
	}
	return hushed
}

// decode reads one text of values as Helm reads a file of them, numbers with its
// habits included. Errors repeat nothing of the text, which may be a Secret's.
func decode(text Values) (map[string]any, error) {
	if len(text.Text) > maxValuesBytes {
		return nil, fmt.Errorf("%s: %w: more than %d bytes", text.Origin, ErrValues, maxValuesBytes)
	}
	if text.TargetPath != "" {
		return nest(text)
	}
	var value any
	if err := yaml.Unmarshal([]byte(text.Text), &value); err != nil {
		return nil, fmt.Errorf("%s: %w: it is no YAML", text.Origin, ErrValues)
	}
	switch values := value.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return values, nil
	}
	return nil, fmt.Errorf("%s: %w: it is no map", text.Origin, ErrValues)
}

var errTargetPath = errors.New("targetPath must be names of fields joined with dots, as in a.b.c, with a backslash before a dot that is part of a name")

// nest puts a text at its path, as it is.
func nest(text Values) (map[string]any, error) {
	steps, err := split(text.TargetPath)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", text.Origin, ErrValues, err)
	}
	var value any = text.Text
	for i := len(steps) - 1; i > 0; i-- {
		value = map[string]any{steps[i]: value}
	}
	return map[string]any{steps[0]: value}, nil
}

// split reads a path of fields.
func split(path string) ([]string, error) {
	var steps []string
	var step strings.Builder
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '\\' && i+1 < len(path):
			i++
			step.WriteByte(path[i])
		case c == '.':
			steps = append(steps, step.String())
			step.Reset()
		case c == '[' || c == '=' || c == ',':
			return nil, errTargetPath
		default:
			step.WriteByte(c)
		}
	}
	steps = append(steps, step.String())
	for _, name := range steps {
		if name == "" {
			return nil, errTargetPath
		}
	}
	if len(steps) > maxSetDepth {
		return nil, errTargetPath
	}
	return steps, nil
}
