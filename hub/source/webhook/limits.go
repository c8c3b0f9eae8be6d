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

	// maxCalls are in the handler, maxChecks of them have their signature checked at
	// once, maxChecksPerPath of those about one source. The others wait for a place,
	// placeTimeout at most.
	maxCalls         = 512
	maxChecks        = 64
	maxChecksPerPath = 8
	placeTimeout     = 10 * time.Second
	// bodyTimeout of a body, which is read at a place.
	bodyTimeout = 10 * time.Second

	// allRate and allBurst of calls whose signature is wrong; oneRate and oneBurst of
	// those about one source from one address. Rates are a second's.
	allRate, allBurst = 100, 200
	oneRate, oneBurst = 1, 10
	// maxCallers are remembered, with how often they called of late.
	maxCallers = 10_000

	// ReadTimeout of one call.
	ReadTimeout = 30 * time.Second
	// secretTimeout of reading the key.
	secretTimeout = 10 * time.Second
	// keyAge up to which a key is used again, so that calls with wrong signatures are
	// not as many reads of Secrets; maxKeys are kept.
	keyAge  = 2 * time.Second
	maxKeys = 1000
)
