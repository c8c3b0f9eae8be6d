// SPDX-License-Identifier: Apache-2.0

package cluster

import "errors"

var (
	// ErrNotCluster is returned when an object of another kind comes in.
	ErrNotCluster = errors.New("not a Cluster")
	// errDeleting refuses a token for a Cluster that is on its way out.
	errDeleting = errors.New("the Cluster is being deleted: no agent can join it")
	// errUsedToken refuses to make a token valid again that was used once.
	errUsedToken = errors.New("this token was used already: make a new one")
)
