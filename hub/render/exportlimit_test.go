// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"
	"time"
)

// LimitCPU gives the workers of one test less processor time for a job, so that what
// never ends is over soon.
func LimitCPU(t *testing.T, most time.Duration) {
	t.Helper()
	kept := workerLimits
	workerLimits.JobCPU = most
	t.Cleanup(func() { workerLimits = kept })
}
