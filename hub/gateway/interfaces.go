// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"io"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// Orders says what each Cluster is to do. It must be fast: it is asked on each
// connect and each change.
type Orders interface {
	// Current returns all orders of a Cluster, the signed head over exactly these,
	// and a channel that closes when Watch tells of a change. The slice is not changed afterwards by either side.
	Current(clusterUID string) (orders []tunnel.SignedOrder, head tunnel.Signed, changed <-chan struct{})
	// Watch names who is told, by its UID, of each Cluster whose orders have changed
	// since they were asked for, or whose head is half-way to its end. told does not
	// block and asks nothing. Called once, before anything else.
	Watch(told func(clusterUID string))
	// Allowed tells whether an order that this Cluster has now names the digest,
	// and as what. Everything else is refused, existing or not.
	Allowed(clusterUID, digest string) (layer tunnel.Layer, sealed, ok bool)
	// Behind names those of the Releases that an agent holds, by UID, whose sequence
	// is beyond what this hub has, or that it has neither an order nor a last order
	// of. The agent is asked to give their orders back, see Held.
	Behind(clusterUID string, have map[string]int64) []string
}

// Held takes orders that an agent gave back. Nothing was verified: the caller
// may be hostile. An error means that the same orders are to be sent again.
type Held interface {
	Take(ctx context.Context, cluster tunnel.ClusterID, orders []tunnel.Signed) error
}

// Resets is told that a Cluster stands for a cluster that was made anew: what
// was reported of its Releases is void. It is called before that is recorded, so
// it may be called again, and an error means that it will be.
type Resets interface {
	Reset(ctx context.Context, cluster tunnel.ClusterID) error
}

// Blobs opens a layer that Orders allowed. What is read fails before its end
// when it is not what the digest says.
type Blobs interface {
	Open(ctx context.Context, digest string, sealed bool) (r io.ReadCloser, size int64, err error)
}

// Reports takes what an agent says. Only Releases of that Cluster may be touched:
// others are named in the answer's Refused, after which the agent drops them.
type Reports interface {
	Observe(ctx context.Context, cluster tunnel.ClusterID, reports []tunnel.Report) tunnel.ReportsAnswer
}

// Clusters finds Clusters in memory and writes their status.
type Clusters interface {
	// ByUID finds a Cluster that exists. It is not to be changed.
	ByUID(uid string) (*v1alpha1.Cluster, bool)
	// Update changes the status in a compare-and-swap against storage: mutate gets
	// the newest state, may run several times, and an error of it ends the update
	// and is returned, wrapped or not. Nothing is written when nothing changed.
	// Conditions are made by whoever writes; a condition Ready that mutate sets to
	// the reason ClusterConflict is to be kept.
	Update(ctx context.Context, id tunnel.ClusterID, mutate func(*v1alpha1.ClusterStatus) error) error
	// Reachable lists the Clusters whose status says reachable.
	Reachable() []tunnel.ClusterID
	// None: there is no Cluster at all. The hub is new, or about to be restored.
	None() bool
}
