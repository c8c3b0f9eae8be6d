// SPDX-License-Identifier: Apache-2.0

package dependency

const (
	// maxDependencies of one chart.
	maxDependencies = 64
	// maxChartFileBytes of a Chart.yaml, its lock, or the older forms of both.
	maxChartFileBytes = 1 << 20
	// maxArchiveBytes of a dependency's archive.
	maxArchiveBytes = 32 << 20
)
