// SPDX-License-Identifier: Apache-2.0

package cluster

import "time"

// Limits of letting a Cluster go.
const (
	// lastFor is how long a Cluster outlives the Releases of a namespace that goes:
	// their release orders need its agent's session. Where the namespace says that
	// they are uninstalled it is uninstallFor.
	lastFor      = 30 * time.Second
	uninstallFor = 5 * time.Minute
	// lookAgain is how often that is looked at, lookLater when it takes long, and
	// lookSeldom while the cluster is away.
	lookAgain  = 500 * time.Millisecond
	lookLater  = 2 * time.Second
	lookSeldom = 30 * time.Second
	// tellEvery is the least time between two writes about the progress of one
	// deletion.
	tellEvery = 5 * time.Second
	// named is how many Releases a message names.
	named = 3
)
