// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// releaseSource checks which source a Release names, and at which revision.
func releaseSource(s *v1alpha1.SourceReference, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	kind := p.Child("kind")
	if s.Kind == "" {
		errs = append(errs, field.Required(kind, strings.Join(sourceKinds(), ", ")))
	} else {
		errs = append(errs, enum(s.Kind, kind, sourceKinds()...)...)
	}
	errs = append(errs, requiredName(s.Name, p.Child("name"), apivalidation.NameIsDNSSubdomain)...)
	if s.Revision == "" {
		return errs
	}
	revision := p.Child("revision")
	switch s.Kind {
	case v1alpha1.SourceKindHelmRegistry:
		return append(errs, chartVersion(s.Revision, revision)...)
	case v1alpha1.SourceKindOCIRegistry:
		if !ociTag.MatchString(s.Revision) && !sha256Digest.MatchString(s.Revision) {
			errs = append(errs, field.Invalid(revision, s.Revision, "must be a tag, or sha256:<hex>"))
		}
		return errs
	default:
		return append(errs, refName(s.Revision, revision)...)
	}
}

func sourceKinds() []string {
	return []string{v1alpha1.SourceKindGitRepository, v1alpha1.SourceKindHelmRegistry, v1alpha1.SourceKindOCIRegistry}
}

// chartVersion is a version, a range, or a digest.
func chartVersion(text string, p *field.Path) field.ErrorList {
	if strings.HasPrefix(text, "sha256:") {
		return digest(text, p)
	}
	return versionRange(text, p)
}

// content checks what of a source is deployed.
func content(r *v1alpha1.ReleaseSpec, p *field.Path) field.ErrorList {
	c := &r.Content
	errs := relativePath(c.Path, p.Child("path"))
	if kinds := boolCount(c.Manifests != nil, c.Helm != nil, c.Kustomize != nil); kinds > 1 {
		errs = append(errs, field.Invalid(p, fmt.Sprintf("%d of them", kinds), "at most one of manifests, helm and kustomize may be set"))
	}
	if r.Source.Kind == v1alpha1.SourceKindHelmRegistry {
		errs = append(errs, chartContent(c, p)...)
	} else if c.Helm != nil && c.Helm.Chart != nil {
		errs = append(errs, field.Forbidden(p.Child("helm", "chart"), "only with a source of kind HelmRegistry: with others the chart is at content.path"))
	}
	if c.Helm != nil {
		errs = append(errs, helm(c.Helm, c.Path, p.Child("helm"))...)
	}
	return errs
}

func boolCount(given ...bool) int {
	n := 0
	for _, yes := range given {
		if yes {
			n++
		}
	}
	return n
}

// chartContent checks what is particular to charts of a HelmRegistry.
func chartContent(c *v1alpha1.ReleaseContent, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Manifests != nil {
		errs = append(errs, field.Forbidden(p.Child("manifests"), "a HelmRegistry has charts only"))
	}
	if c.Kustomize != nil {
		errs = append(errs, field.Forbidden(p.Child("kustomize"), "a HelmRegistry has charts only"))
	}
	if path.Clean(c.Path) != "." {
		errs = append(errs, field.Forbidden(p.Child("path"), "with a HelmRegistry the chart is named by content.helm.chart"))
	}
	chart := p.Child("helm", "chart")
	switch {
	case c.Helm == nil || c.Helm.Chart == nil:
		return append(errs, field.Required(chart, "a HelmRegistry has many charts: name one"))
	case c.Helm.Chart.Name == "":
		errs = append(errs, field.Required(chart.Child("name"), ""))
	case len(c.Helm.Chart.Name) > MaxChartName:
		errs = append(errs, field.TooLong(chart.Child("name"), "", MaxChartName))
	case !chartName(c.Helm.Chart.Name):
		errs = append(errs, field.Invalid(chart.Child("name"), c.Helm.Chart.Name, "must be the name of a chart: letters, digits, - _ . and, below an oci:// URL, / between parts"))
	}
	if c.Helm.Chart.Version != "" {
		errs = append(errs, chartVersion(c.Helm.Chart.Version, chart.Child("version"))...)
	}
	return errs
}

// chartName keeps a name from becoming another path than that of a chart.
func chartName(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.Trim(part, ".") == "" {
			return false
		}
		for _, r := range part {
			if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", r) {
				return false
			}
		}
	}
	return true
}

// helm checks how a chart is rendered.
func helm(h *v1alpha1.HelmContent, chart string, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if h.ReleaseName != "" {
		errs = append(errs, helmReleaseName(h.ReleaseName, p.Child("releaseName"))...)
	}
	errs = append(errs, valuesFiles(h.ValuesFiles, chart, p.Child("valuesFiles"))...)
	if n := len(h.ValuesFrom); n > MaxValuesFrom {
		errs = append(errs, field.TooMany(p.Child("valuesFrom"), n, MaxValuesFrom))
	}
	for i := range h.ValuesFrom {
		errs = append(errs, valuesReference(&h.ValuesFrom[i], p.Child("valuesFrom").Index(i))...)
	}
	if h.Values != nil && len(h.Values.Raw) > 0 {
		errs = append(errs, values(h.Values.Raw, p.Child("values"))...)
	}
	return append(errs, enum(h.CRDs, p.Child("crds"), v1alpha1.CRDsApply, v1alpha1.CRDsSkip)...)
}

func helmReleaseName(name string, p *field.Path) field.ErrorList {
	if len(name) > MaxHelmReleaseName {
		return field.ErrorList{field.TooLong(p, "", MaxHelmReleaseName)}
	}
	return requiredName(name, p, apivalidation.NameIsDNSSubdomain)
}

// valuesFiles stand relative to the chart and may lie beside it, but not outside
// of the source.
func valuesFiles(files []string, chart string, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(files); n > MaxValuesFiles {
		errs = append(errs, field.TooMany(p, n, MaxValuesFiles))
	}
	for i, file := range files {
		if wrong := pathText(file, p.Index(i)); len(wrong) > 0 {
			errs = append(errs, wrong...)
			continue
		}
		if joined := path.Join(chart, file); joined == ".." || strings.HasPrefix(joined, "../") {
			errs = append(errs, field.Invalid(p.Index(i), file, "must not leave the source"))
		}
	}
	return errs
}

func valuesReference(v *v1alpha1.ValuesReference, p *field.Path) field.ErrorList {
	errs := enum(v.Kind, p.Child("kind"), v1alpha1.ReferenceConfigMap, v1alpha1.ReferenceSecret)
	errs = append(errs, requiredName(v.Name, p.Child("name"), apivalidation.NameIsDNSSubdomain)...)
	errs = append(errs, dataKey(v.Key, p.Child("key"))...)
	if len(v.TargetPath) > MaxPath {
		errs = append(errs, field.TooLong(p.Child("targetPath"), "", MaxPath))
	}
	return errs
}

// dataKey checks a key in the data of a ConfigMap or Secret.
func dataKey(key string, p *field.Path) field.ErrorList {
	if key == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	var errs field.ErrorList
	for _, msg := range utilvalidation.IsConfigMapKey(key) {
		errs = append(errs, field.Invalid(p, key, msg))
	}
	return errs
}

// values checks inline values. An error repeats nothing of them.
func values(raw []byte, p *field.Path) field.ErrorList {
	if len(raw) > MaxValues {
		return field.ErrorList{field.TooLong(p, "", MaxValues)}
	}
	text := bytes.TrimSpace(raw)
	if !json.Valid(text) || (text[0] != '{' && string(text) != "null") {
		return field.ErrorList{field.Invalid(p, "(not shown)", "must be an object")}
	}
	return nil
}

// images checks what becomes of the tags of images.
func images(i *v1alpha1.ReleaseImages, p *field.Path) field.ErrorList {
	errs := enum(i.Policy, p.Child("policy"), v1alpha1.ImagesAsIs, v1alpha1.ImagesPin)
	if n := len(i.SecretRefs); n > MaxImageSecrets {
		errs = append(errs, field.TooMany(p.Child("secretRefs"), n, MaxImageSecrets))
	}
	for n, ref := range i.SecretRefs {
		errs = append(errs, requiredName(ref.Name, p.Child("secretRefs").Index(n).Child("name"), apivalidation.NameIsDNSSubdomain)...)
	}
	return errs
}
