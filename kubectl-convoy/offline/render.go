// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/content"
	"kumodo.io/convoy/hub/render/files"
	"kumodo.io/convoy/pkg/manifest"
)

// Options of one render.
type Options struct {
	// Release, with its defaults.
	Release *v1alpha1.Release
	// Source is the folder that stands in for its source.
	Source string
	// ClusterName is that of spec.clusterRef when it is empty; Cluster its metadata.
	ClusterName string
	Cluster     map[string]string
	// KubeVersion and APIVersions are what templates may ask of the cluster.
	KubeVersion string
	APIVersions []string
	// Given ConfigMaps and Secrets.
	Given *Given
	// Images: reference -> sha256:<hex>, for images.policy Pin.
	Images map[string]string
	// ImagesAsIs leaves tags where the Release pins them.
	ImagesAsIs bool
}

// Result of a render.
type Result struct {
	// Set of the objects, with their Secret values: whoever shows them masks them.
	Set *manifest.Set
	// Warnings for people.
	Warnings []string
}

// Render makes the objects. Errors of the content name file, document and line.
func Render(o Options) (result *Result, err error) {
	job, err := o.job()
	if err != nil {
		return nil, err
	}
	source, err := openFolder(o.Source)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := o.locate(source, &job); err != nil {
		return nil, err
	}
	scope, err := firstScope(&job)
	if err != nil {
		return nil, err
	}
	for range maxRounds {
		tree, err := source.part(scope)
		if err != nil {
			return nil, err
		}
		made, err := content.Render(job, tree, nil)
		switch {
		case err == nil:
			result := &Result{Set: made.Set, Warnings: made.Warnings}
			if o.ImagesAsIs && o.Release.Spec.Images.Policy == v1alpha1.ImagesPin {
				result.Warnings = append(result.Warnings, "images have the tags of the source: the hub puts digests in their place")
			}
			return result, nil
		case !errors.Is(err, content.ErrIncomplete):
			return nil, err
		case len(made.Needs.Images) > 0:
			return nil, fmt.Errorf("the digests of %s %w: give them with --image REFERENCE=sha256:..., or leave tags with --images-as-is", strings.Join(made.Needs.Images, ", "), ErrRemote)
		}
		more := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(scope), made.Needs.Paths...))))
		if slices.Equal(more, scope) {
			return nil, errRounds
		}
		scope = more
	}
	return nil, errRounds
}

// locate finds the chart of a HelmRegistry in the folder: the hub would have fetched
// it.
func (o *Options) locate(source *folder, job *content.Job) error {
	helm := job.Content.Helm
	if o.Release.Spec.Source.Kind != v1alpha1.SourceKindHelmRegistry || helm == nil || helm.Chart == nil {
		return nil
	}
	name := path.Base(helm.Chart.Name)
	for _, place := range []string{".", name} {
		if _, err := source.root.Stat(path.Join(place, "Chart.yaml")); err == nil {
			job.Content.Path = path.Join(place, job.Content.Path)
			chart := *helm
			chart.Chart = nil
			job.Content.Helm = &chart
			return nil
		}
	}
	return fmt.Errorf("%w has no Chart.yaml, nor has %s in it: chart %s of a HelmRegistry %w; unpack it there first (helm pull --untar)", ErrSource, name, helm.Chart.Name, ErrRemote)
}

// firstScope is what a render reads in any case.
func firstScope(job *content.Job) ([]string, error) {
	place, err := files.Clean(job.Content.Path)
	if err != nil {
		return nil, fmt.Errorf("spec.content.path: %w", err)
	}
	scope := []string{place}
	for _, mutation := range job.Mutations {
		if clean, err := files.Clean(mutation.File); err == nil && mutation.File != "" {
			scope = append(scope, clean)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(scope))), nil
}
