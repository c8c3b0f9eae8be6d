// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// Kinds of files.
const (
	kindRaw       = "raw"
	kindHelm      = "helm"
	kindKustomize = "kustomize"
)

// spec says what of the source a step's Release deploys, and as what.
func (c *Case) spec(s *Step, place string) (corev1alpha1.ReleaseContent, error) {
	content := corev1alpha1.ReleaseContent{Path: place}
	switch kind := c.kind(s); kind {
	case "", kindRaw:
		content.Manifests = &corev1alpha1.ManifestsContent{}
	case kindKustomize:
		content.Kustomize = &corev1alpha1.KustomizeContent{}
	case kindHelm:
		content.Helm = &corev1alpha1.HelmContent{}
		values, err := yaml.YAMLToJSON([]byte(c.values(s)))
		if err != nil {
			return content, c.broken(s.at("values"), "values: %w", err)
		}
		if text := string(values); text != "" && text != "null" {
			content.Helm.Values = &runtime.RawExtension{Raw: values}
		}
	default:
		return content, c.broken(s.at("kind"), "kind: %q is none of raw, helm and kustomize", kind)
	}
	return content, nil
}

// kind of a step's files, or of those that it stands on.
func (c *Case) kind(s *Step) string {
	if s.Kind == "" && s.Base != "" {
		return c.kind(c.find(s.Base))
	}
	return s.Kind
}

// values of a step, or of the one that it stands on.
func (c *Case) values(s *Step) string {
	if s.Values == "" && s.Base != "" {
		return c.values(c.find(s.Base))
	}
	return s.Values
}

// parts are a step's Releases: one, unless its files are kustomizations side by side
// and nobody says which is meant; then each folder that none of the others names is
// one.
func (c *Case) parts(s *Step) ([]*Step, error) {
	files, _, err := c.files(s)
	if err != nil {
		return nil, err
	}
	if c.kind(s) != kindKustomize || s.Release != "" || s.Path != "" || folderOf(files) != "." || files["kustomization.yaml"] != "" {
		return []*Step{s}, nil
	}
	var parts []*Step
	for _, name := range slices.Sorted(maps.Keys(files)) {
		folder, base := path.Split(name)
		folder = strings.TrimSuffix(folder, "/")
		if base != "kustomization.yaml" || strings.Contains(folder, "/") || named(files, folder) {
			continue
		}
		part := *s
		part.Release, part.Path = folder, folder
		parts = append(parts, &part)
	}
	if len(parts) == 0 {
		return []*Step{s}, nil
	}
	return parts, nil
}

// named says whether a kustomization names a folder beside it.
func named(files map[string]string, folder string) bool {
	for name, text := range files {
		if path.Base(name) == "kustomization.yaml" && regexp.MustCompile(`\.\./`+regexp.QuoteMeta(folder)+`(/|[^-\w.]|$)`).MatchString(text) {
			return true
		}
	}
	return false
}
