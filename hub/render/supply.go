// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/content"
	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/render/files"
	"kumodo.io/convoy/hub/source/snapshot"
)

// needs is what a worker lacks.
type needs content.Needs

func (n needs) none() bool { return len(n.Paths) == 0 && len(n.Images) == 0 && !n.Charts }

// scope is what of the source a worker is sent first: the content's path, the files
// that the job names, and what renders of the same input asked for.
func (r *Renderer) scope(job *Job, static string) ([]string, error) {
	place, err := files.Clean(job.Content.Content.Path)
	if err != nil {
		return nil, failed(v1alpha1.ReasonPathNotFound, err)
	}
	paths := []string{place}
	if helm := job.Content.Content.Helm; helm != nil {
		for _, name := range helm.ValuesFiles {
			paths = append(paths, path.Join(place, name))
		}
	}
	for _, mutation := range job.Content.Mutations {
		if mutation.File != "" {
			paths = append(paths, mutation.File)
		}
	}
	paths = append(paths, pathsOf(r.shared.readSets(job.Tenant, static), facts.Path)...)
	return outermost(paths), nil
}

// supply adds what a worker asked for: paths to the scope, digests to the world.
func (r *Renderer) supply(ctx context.Context, job *Job, scope []string, asked needs) ([]string, error) {
	if len(asked.Paths) > maxPaths || len(asked.Images) > maxPaths {
		return nil, failed(v1alpha1.ReasonRenderFailed, errNeeds)
	}
	more := scope
	for _, place := range asked.Paths {
		kind, err := job.Snapshot.Kind(place)
		if err != nil {
			return nil, sourceFailed(err)
		}
		// Of a file that is asked for, the folder is: the next will be one beside it.
		if folder := path.Dir(place); kind == snapshot.File && folder != "." {
			place = folder
		}
		more = append(more[:len(more):len(more)], place)
	}
	more = outermost(more)
	images := maps.Clone(job.Content.World.Images)
	for _, reference := range asked.Images {
		if job.Images == nil {
			return nil, failed(v1alpha1.ReasonRenderFailed, fmt.Errorf("%s: the digests of images cannot be looked up", reference))
		}
		digest, err := job.Images.Digest(ctx, reference)
		if err != nil {
			return nil, err
		}
		images[reference] = digest
	}
	if asked.Charts {
		if job.Charts == nil || !job.Content.AskCharts {
			return nil, failed(v1alpha1.ReasonRenderFailed, errNeeds)
		}
		charts, err := job.Charts.Charts(ctx, job.Content.Content.Path)
		if err != nil {
			return nil, err
		}
		job.Snapshot, job.Content.AskCharts = overlay{job.Snapshot, charts}, false
		return more, nil
	}
	if slices.Equal(more, scope) && len(images) == len(job.Content.World.Images) {
		return nil, failed(v1alpha1.ReasonRenderFailed, errNeeds)
	}
	job.Content.World.Images = images
	return more, nil
}

// outermost sorts paths and leaves out those below another; "" is the whole source.
func outermost(paths []string) []string {
	var kept []string
	for _, place := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		if place == "." {
			place = ""
		}
		covered := func(folder string) bool {
			return folder == "" || place == folder || strings.HasPrefix(place, folder+"/")
		}
		if !slices.ContainsFunc(kept, covered) {
			kept = append(kept, place)
		}
	}
	if slices.Contains(kept, "") {
		return []string{""}
	}
	return kept
}

// bounded takes reads of a worker as far as they may go.
func bounded(reads []string) []string {
	reads = slices.DeleteFunc(slices.Clone(reads), func(name string) bool { return len(name) > maxReadBytes })
	return reads[:min(len(reads), maxReads)]
}

// describe puts what a worker said about a render into a result.
func (d *workerDone) describe(result *Result) {
	short := func(text string) string { return text[:min(len(text), maxWordBytes)] }
	result.Kind, result.Reads = short(d.Kind), bounded(d.Reads)
	result.Hooks = min(max(d.Hooks, 0), result.Count)
	result.Chart, result.ChartVersion, result.AppVersion = short(d.Chart), short(d.ChartVersion), short(d.AppVersion)
	for _, warning := range d.Warnings[:min(len(d.Warnings), maxWarnings)] {
		result.Warnings = append(result.Warnings, short(warning))
	}
}
