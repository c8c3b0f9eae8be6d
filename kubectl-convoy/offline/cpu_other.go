// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package offline

import "time"

// limitCPU has no limit to set here: the wall time is the one that ends a render.
func limitCPU(time.Duration) error { return nil }
