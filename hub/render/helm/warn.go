// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
)

// warning says what of a chart is another in every render, and what becomes of it. place is
// where it was called first, empty if that is not known.
func (w *words) warning(place string) string {
	called, others, at := w.named(place)
	said := "the chart's templates name " + called
	switch {
	case place != "" && at:
		said = place + ", calls " + called
		if others != "" {
			said += " (the templates name " + others + ", too)"
		}
	case place != "":
		said = place + ", leads to a call of " + called
	case called == "":
		said = "a text that is given to tpl may ask for something random, or for the time"
	}
	said += ": the answer is another in every render, so that the values made of it change whenever an input of the render does"
	if w.asks {
		said += "; lookup, which finds nothing here, does not keep them"
	}
	return said + ". Take from a Secret, by valuesFrom, what has to stay."
}

// named gives the functions that stand at a place, and the others that the chart names;
// false and all of them when none stands there.
func (w *words) named(where string) (functions, others string, at bool) {
	var here, all []string
	for _, e := range w.edits {
		for _, p := range e.places {
			function := string(e.plain[p.at : p.at+p.length])
			all = append(all, function)
			if fmt.Sprintf("%s, line %d", e.name, 1+bytes.Count(e.plain[:p.at], []byte("\n"))) == where {
				here = append(here, function)
			}
		}
	}
	if len(here) > 0 {
		all = slices.DeleteFunc(all, func(name string) bool { return slices.Contains(here, name) })
		return listed(here), listed(all), true
	}
	return listed(all), "", false
}

// listed names a few functions, each once.
func listed(names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	if over := len(names) - maxNamed; over > 0 {
		return fmt.Sprintf("%s or %d others", strings.Join(names[:maxNamed], ", "), over)
	}
	return strings.Join(names, " or ")
}

// templateNames are the names of templates as errors have them.
func templateNames(c *chart.Chart) map[*chart.File]string {
	out := map[*chart.File]string{}
	for one := range charts(c) {
		for _, file := range one.Templates {
			if file != nil {
				out[file] = path.Join(one.ChartFullPath(), file.Name)
			}
		}
	}
	return out
}
