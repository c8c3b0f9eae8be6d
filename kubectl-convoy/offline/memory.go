// SPDX-License-Identifier: Apache-2.0

package offline

import "runtime/metrics"

// used is the memory that Go's runtime has of the system, in bytes.
func used() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
