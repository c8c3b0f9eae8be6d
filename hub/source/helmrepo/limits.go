// SPDX-License-Identifier: Apache-2.0

package helmrepo

const (
	// MaxIndexBytes of an index.yaml.
	MaxIndexBytes = 64 << 20
	// maxEntryBytes of one version of one chart in an index, and of one piece of a
	// JSON index.
	maxEntryBytes = 1 << 20
	// maxFlowBytes of an index in flow style, which is read as a whole.
	maxFlowBytes = 2 << 20
	// lineBytes of a line that are looked at; more of it is read past.
	lineBytes = 64 << 10
	// maxNameBytes of a chart's name.
	maxNameBytes = 250
)
