// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/render/files"
)

// Options of one render.
type Options struct {
	// Tree has the chart at Path: a folder with a Chart.yaml, or a .tgz.
	Tree *files.Tree
	Path string
	// ReleaseName and Namespace are what templates see as .Release.
	ReleaseName string
	Namespace   string
	// ValuesFiles are relative to the chart and may climb inside the tree; of an
	// archive, its own files stand below its path. Later ones win.
	ValuesFiles []string
	// Values win over ValuesFiles, later ones over earlier ones. null removes a
	// default.
	Values []map[string]any
	// Secrets are texts that no error may repeat.
	Secrets []string
	// SkipCRDs leaves the crds folders out.
	SkipCRDs bool
	// SkipSchema leaves values.schema.json out of account.
	SkipSchema bool
	// Facts answers what templates ask of the cluster, and is told of what is random.
	Facts facts.Facts
}

// Result is what a chart gives.
type Result struct {
	// Files are the rendered templates in the order of their names, hooks among them:
	// CHART/templates/NAME. NOTES.txt, partials and empty ones are left out.
	Files []files.File
	// CRDs are the files of crds folders as they are, in Helm's order.
	CRDs []files.File
	// Chart, Version and AppVersion as Chart.yaml has them.
	Chart, Version, AppVersion string
	// Warnings for people: what of the chart's templates is another in every render.
	Warnings []string
}

// Render renders a chart. Its errors wrap the sentinels of this package or of files,
// fit in a status, and repeat nothing of Secrets.
func Render(o Options) (result Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			// The libraries under Helm's engine meet input that is somebody's else; what
			// they say of it may hold values.
			result, err = Result{}, fmt.Errorf("%s: %w: Helm's libraries gave up on it", shownPath(o.Path), ErrChart)
		}
	}()
	if len(o.ReleaseName) > MaxReleaseName {
		return Result{}, fmt.Errorf("release name %q: %w: it has more than %d characters", o.ReleaseName, ErrChart, MaxReleaseName)
	}
	source, err := load(o.Tree, o.Path)
	if err != nil {
		return Result{}, err
	}
	values, err := readValues(o, source)
	if err != nil {
		return Result{}, err
	}
	c := source.chart
	// Values that a parent takes from its subcharts are taken in place.
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		return Result{}, fmt.Errorf("chart %s: %w: its dependencies: %s", c.Name(), ErrValues, cut(err.Error(), o.Secrets))
	}
	if err := checkKubeVersion(c, o.Facts); err != nil {
		return Result{}, err
	}
	rendered, warning, err := execute(o, c, values)
	if err != nil {
		return Result{}, err
	}
	result = Result{Chart: c.Name(), Version: c.Metadata.Version, AppVersion: c.Metadata.AppVersion}
	if warning != "" {
		result.Warnings = []string{warning}
	}
	if result.Files, err = ordered(rendered); err != nil {
		return Result{}, err
	}
	if !o.SkipCRDs {
		for _, crd := range c.CRDObjects() {
			result.CRDs = append(result.CRDs, files.File{Name: crd.Filename, Data: crd.File.Data})
		}
	}
	return result, nil
}

// execute runs the templates: once, with everything random made to fail, where it is
// worth finding out that nothing random is used; and else as they are. What is random is
// told in a warning.
func execute(o Options, c *chart.Chart, values map[string]any) (rendered map[string]string, warning string, err error) {
	words := findImpure(c, values)
	if words.certain() {
		o.Facts.Note(facts.Random)
		rendered, err = executeOnce(o, c, values)
		return rendered, words.warning(""), err
	}
	if !words.possible() {
		rendered, err = executeOnce(o, c, values)
		return rendered, "", err
	}
	words.forbid()
	rendered, err = executeOnce(o, c, values)
	words.allow()
	if !errors.Is(err, ErrTemplate) {
		return rendered, "", err
	}
	place := ""
	var barred *templateError
	if errors.As(err, &barred) {
		place = barred.place
	}
	o.SkipSchema = true // the values have fitted
	if rendered, err = executeOnce(o, c, values); err == nil {
		o.Facts.Note(facts.Random)
		warning = words.warning(place)
	}
	return rendered, warning, err
}

func executeOnce(o Options, c *chart.Chart, values map[string]any) (map[string]string, error) {
	release := chartutil.ReleaseOptions{Name: o.ReleaseName, Namespace: o.Namespace, Revision: 1, IsInstall: true}
	top, err := chartutil.ToRenderValuesWithSchemaValidation(c, values, release, nil, true)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w: %s", c.Name(), ErrValues, cut(err.Error(), o.Secrets))
	}
	if !o.SkipSchema {
		merged, err := top.Table("Values")
		if err != nil {
			return nil, fmt.Errorf("chart %s: %w: they are no map", c.Name(), ErrValues)
		}
		if err := validate(c, merged, o.Secrets); err != nil {
			return nil, err
		}
	}
	top["Capabilities"] = newCapabilities(o.Facts, onlyAskedSingly(c, values))
	rendered, err := engine.Engine{}.Render(c, top)
	if err != nil {
		return nil, explain(c, err, o.Secrets)
	}
	return rendered, nil
}

// ordered sorts the rendered files and leaves out what is no manifest. It takes them out
// of the map one by one: together they may be most of what a worker has.
func ordered(rendered map[string]string) ([]files.File, error) {
	var list []files.File
	total := 0
	for name, text := range rendered {
		delete(rendered, name)
		if strings.HasSuffix(name, "NOTES.txt") || strings.HasPrefix(path.Base(name), "_") || strings.TrimSpace(text) == "" {
			continue
		}
		if total += len(text); total > MaxRenderedBytes {
			return nil, fmt.Errorf("%s: %w: the templates give more than %d MiB", name, ErrTooLarge, MaxRenderedBytes>>20)
		}
		if data := separate(text); len(data) > 0 {
			list = append(list, files.File{Name: name, Data: data})
		}
	}
	slices.SortFunc(list, func(a, b files.File) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func shownPath(p string) string {
	if p == "" || p == "." {
		return "the chart"
	}
	return p
}
