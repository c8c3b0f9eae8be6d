// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"io"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// Clusters are those of the hub's cache, shared and read only.
type Clusters interface {
	Cluster(key types.NamespacedName) (*v1alpha1.Cluster, bool)
	Clusters() []*v1alpha1.Cluster
}

// Status writes what is known of Clusters.
type Status interface {
	// Cluster changes a status by compare-and-swap. mutate may run several times. A
	// condition Ready that it sets to ProbeFailed, Unsupported or ClusterConflict is
	// kept; others are made by who writes.
	Cluster(ctx context.Context, key types.NamespacedName, uid types.UID, mutate func(*v1alpha1.ClusterStatus) error) error
	// Connected: an engine has begun anew for the Cluster, and can be asked.
	Connected(cluster tunnel.ClusterID)
	// Reset: the Cluster stands for another target than before, and what was reported
	// of its Releases is void. It is called before that is recorded.
	Reset(ctx context.Context, cluster tunnel.ClusterID) error
}

// Secrets are the host's.
type Secrets interface {
	// GetSecret gives ErrNoSecret or ErrNoHost, wrapped, when there is none.
	GetSecret(ctx context.Context, namespace, name string) (map[string][]byte, error)
}

// Orders says what each Cluster is to do, as it does to the gateway.
type Orders interface {
	Current(clusterUID string) (orders []tunnel.SignedOrder, head tunnel.Signed, changed <-chan struct{})
	Allowed(clusterUID, digest string) (layer tunnel.Layer, sealed, ok bool)
	// Behind names the Releases of which an engine has more than the hub knows. It is
	// told all that a newly started engine has.
	Behind(clusterUID string, have map[string]int64) []string
}

// Held takes back what a restored hub has lost.
type Held interface {
	// Take verifies signed orders and takes over what is newer.
	Take(ctx context.Context, cluster tunnel.ClusterID, orders []tunnel.Signed) error
}

// Blobs opens layers of the store.
type Blobs interface {
	Open(ctx context.Context, digest string, sealed bool) (r io.ReadCloser, size int64, err error)
}

// Reports takes what an engine says, as it takes it from an agent.
type Reports interface {
	Observe(ctx context.Context, cluster tunnel.ClusterID, reports []tunnel.Report) tunnel.ReportsAnswer
}
