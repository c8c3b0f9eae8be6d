// SPDX-License-Identifier: Apache-2.0

package helm

// Limits of a chart. What is beyond them is refused by name. Time and memory of
// templates are bounded by the process that a render is made in.
const (
	// MaxChartFileBytes is the size of one file of a chart, as Helm has it.
	MaxChartFileBytes = 5 << 20
	// MaxChartBytes is what all files of a chart and its subcharts have together,
	// archives unpacked; Helm has it for each archive.
	MaxChartBytes = 100 << 20
	// MaxChartFiles is how many files that are.
	MaxChartFiles = 10_000
	// MaxNesting is how deep subcharts may be in subcharts.
	MaxNesting = 16
	// MaxRenderedBytes is what all templates together may give.
	MaxRenderedBytes = 128 << 20
	// MaxReleaseName is the length of a release name, as Helm has it.
	MaxReleaseName = 53

	// maxMessage cuts what one error says.
	maxMessage = 1024
	// maxExpression cuts the piece of a template that an error repeats.
	maxExpression = 100
	// maxShown is how many faults of a schema, or missing charts, are named.
	maxShown = 10
	// minSecret is the length of the shortest text that is struck out of an error.
	minSecret = 4
	// maxNamed functions in a warning.
	maxNamed = 5
)
