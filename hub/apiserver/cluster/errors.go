// SPDX-License-Identifier: Apache-2.0

package cluster

import "errors"

var (
	// errDeleting refuses a token for a Cluster that is on its way out.
	errDeleting = errors.New("the Cluster is being deleted: no agent can join it")
	// errUsedToken refuses to make a token valid again that was used once.
	errUsedToken = errors.New("this token was used already: make a new one")
	// errNoAgent refuses what needs an agent in a mode that has none.
	errNoAgent = errors.New("the hub dials this Cluster itself: it has no agent")
	// errNeverJoined refuses to revoke what nobody has.
	errNeverJoined = errors.New("no agent has joined and no token is out: there is nothing to revoke")
)
