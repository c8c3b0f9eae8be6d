// SPDX-License-Identifier: Apache-2.0

package mutate

// Limits of one mutation. Time and memory are those of the render worker; these keep
// an honest mistake from reaching them.
const (
	// maxBodyBytes of one body.
	maxBodyBytes = 1 << 20
	// maxTextBytes of what a template, or a function in one, gives.
	maxTextBytes = 1 << 20
	// maxSteps of the loops of one template.
	maxSteps = 100_000
	// maxList is how many items a function may make.
	maxList = 10_000
	// maxNodes of a value that a template writes out.
	maxNodes = 100_000
	// maxWidthDigits: the width of a verb of printf, in digits.
	maxWidthDigits = 3
	// maxExpression in bytes, and maxCost of evaluating it, in cel's units: some 50 ms.
	maxExpression = 4 << 10
	maxCost       = 1_000_000
	// maxCopied is what the copy operations of one JSON patch may add, in bytes.
	maxCopied = 8 << 20
	// maxShown cuts what a message repeats of templates and expressions.
	maxShown = 200
)
