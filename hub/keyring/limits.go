// SPDX-License-Identifier: Apache-2.0

package keyring

import "time"

const (
	// loadAttempts bounds how often a start tries again when another start made
	// the same key at the same time.
	loadAttempts = 5

	// missingInterval is how often an APIService that is not there yet is looked
	// for, and keepInterval how often one that is right is looked at again.
	missingInterval = 2 * time.Second
	keepInterval    = 5 * time.Minute

	// proofAge is how old a proven request may be, and how far clocks may differ.
	proofAge = time.Minute
)
