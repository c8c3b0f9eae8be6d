// SPDX-License-Identifier: Apache-2.0

package healthrule

import "time"

const (
	// maxDocumentBytes and maxDocumentFacts bound one document: about 64 rules of each of
	// a dozen sets, and what they read of cluster and self. A set that does not fit any
	// more counts as missing.
	maxDocumentBytes = 512 << 10
	maxDocumentFacts = 128
	// maxSetFacts bounds what one set reads; a rule that goes beyond is left out.
	maxSetFacts = 64
	// maxFactBytes of one fact. A longer label or annotation counts as one that is not
	// there: orders are kept by agents in objects of bounded size.
	maxFactBytes = 1 << 10

	// maxErrors in a status and maxErrorBytes of one.
	maxErrors     = 16
	maxErrorBytes = 512

	// maxDocuments that are remembered, by the sets that they are made of.
	maxDocuments = 1024
	// storeAgain is how long a document that was stored is believed to be there. It is
	// far below the time for which the store keeps what nothing refers to.
	storeAgain = time.Hour
	maxStored  = 4096

	// turnsPerSecond is how many Releases get other rules: each takes an order and a
	// report, and a set of all namespaces may concern all Releases of the hub.
	turnsPerSecond = 200
	// spread is the time for each Release over which those that a change concerns are
	// looked at, and maxSpread the most of it.
	spread    = time.Millisecond
	maxSpread = 10 * time.Second
)
