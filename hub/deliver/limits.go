// SPDX-License-Identifier: Apache-2.0

package deliver

import "time"

const (
	// headLife is how long a head proves what it says; it is made anew when half
	// of that is over.
	headLife = 15 * time.Minute
	// headCheck is how often the age of the heads is looked at.
	headCheck = 15 * time.Second
	// keepBuried is how long the last order of a deleted Release waits for an
	// agent that is away.
	keepBuried = 30 * 24 * time.Hour
	// staleAfter is when a remove order that was refused may have been too old.
	staleAfter = 24 * time.Hour
	// expireEvery is how often those are looked for.
	expireEvery = time.Hour
	// heldPatience is how long an agent may take to give back the orders that it was
	// asked for.
	heldPatience = 15 * time.Second
	// storeTimeout ends one request to etcd.
	storeTimeout = 10 * time.Second
	// pageSize of the list of stored orders.
	pageSize = 500
	// maxStored is the largest stored order that is read, in bytes.
	maxStored = 64 << 10
)

// Prefix of the keys that hold the last orders of deleted Releases:
// Prefix + <Cluster UID>/<Release UID>.
const Prefix = "/registry/convoy.kumodo.io/orders/"
