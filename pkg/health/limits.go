// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// metricsWithin is how long an autoscaler may be without the metrics of what it scales, or
// without that itself: a metrics server has none of pods that were just made.
const metricsWithin = 2 * time.Minute

// Limits of health rules. They hold at the hub and at the edge.
const (
	// MaxDocument is the largest document that is read, in bytes.
	MaxDocument = 4 << 20
	// MaxRules of one document.
	MaxRules = 4096
	// maxMessage of a verdict, in bytes.
	maxMessage = 512
	// maxAnnotation that is read as JSON, in bytes.
	maxAnnotation = 64 << 10
	// maxNamed things that one message lists.
	maxNamed = 5
)
