// SPDX-License-Identifier: Apache-2.0

package expression

// Limits of one expression. They hold at the hub and at the edge.
const (
	// MaxText of an expression, in bytes.
	MaxText = 4 << 10
	// maxCost of one evaluation, in cel's units: some 30 ms of one core.
	maxCost = 100_000
	// maxNesting of an expression, in levels.
	maxNesting = 64
	// maxRegex is the largest regular expression, in instructions.
	maxRegex = 2000
	// maxShown cuts what a message repeats, in bytes.
	maxShown = 300
	// maxResult of a text, in bytes; what is longer is cut.
	maxResult = 4 << 10
)
