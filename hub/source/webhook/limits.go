// SPDX-License-Identifier: Apache-2.0

package webhook

import "time"

const (
	// MaxBodyBytes of a call.
	MaxBodyBytes = 1 << 20
	// MaxHeaderBytes of a call.
	MaxHeaderBytes = 16 << 10
	// maxPathBytes of a call's path.
	maxPathBytes = 1024

	// allRate and allBurst of all calls; oneRate and oneBurst of those about one source
	// from one address. Rates are a second's.
	allRate, allBurst = 100, 200
	oneRate, oneBurst = 1, 10
	// maxCallers are remembered, with how often they called of late.
	maxCallers = 10_000

	// ReadTimeout of one call.
	ReadTimeout = 30 * time.Second
	// secretTimeout of reading the key.
	secretTimeout = 10 * time.Second
)
