// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// Releases are those of the hub's cache. What is returned is shared and read only.
type Releases interface {
	Release(key types.NamespacedName) (*corev1alpha1.Release, bool)
	ReleaseByUID(uid types.UID) (*corev1alpha1.Release, bool)
	ReleasesByCluster(cluster types.NamespacedName) []*corev1alpha1.Release
}

// Clusters are those of the hub's cache.
type Clusters interface {
	Cluster(key types.NamespacedName) (*corev1alpha1.Cluster, bool)
	ClusterByUID(uid types.UID) (*corev1alpha1.Cluster, bool)
}

// Sources are those of the hub's cache.
type Sources interface {
	Source(kind string, key types.NamespacedName) (sourcev1alpha1.Source, bool)
}

// Memory is told of what was written, before the watch tells it.
type Memory interface {
	PutRelease(release *corev1alpha1.Release)
	PutCluster(cluster *corev1alpha1.Cluster)
	PutSource(source sourcev1alpha1.Source)
}

// StatusStore is the registry's store of one kind. UpdateStatus is a
// compare-and-swap: mutate gets a fresh copy each time it is called, its error
// comes back as it is, and a change of nothing writes nothing.
type StatusStore[T any] interface {
	UpdateStatus(ctx context.Context, key types.NamespacedName, uid types.UID, mutate func(T) error) (T, error)
}

// InventoryStore is the registry's store of ReleaseInventories.
type InventoryStore interface {
	Get(ctx context.Context, key types.NamespacedName) (*corev1alpha1.ReleaseInventory, error)
	// Put creates the object, or changes the one that is there.
	Put(ctx context.Context, key types.NamespacedName, create func() *corev1alpha1.ReleaseInventory, mutate func(*corev1alpha1.ReleaseInventory) error) (*corev1alpha1.ReleaseInventory, error)
	// Delete of one that is not there is no error.
	Delete(ctx context.Context, key types.NamespacedName, uid types.UID) error
}

// LastOrders are the last orders of deleted Releases.
type LastOrders interface {
	// Done tells that the agent carried a remove or release order out.
	Done(ctx context.Context, clusterUID, releaseUID types.UID, sequence int64) error
	// Refused tells that the agent did not accept an order, and what it has applied if it
	// said so.
	Refused(ctx context.Context, clusterUID, releaseUID types.UID, sequence int64, inventory []tunnel.InventoryEntry) error
	// LastOrder is the sequence of the one that a Release has; 0: it has none.
	LastOrder(releaseUID types.UID) int64
}

// Orders keeps the orders of each Cluster.
type Orders interface {
	LastOrders
	// Verify reads an order that this hub signed; tunnel.ErrSignature: it did not.
	Verify(signed tunnel.Signed) (tunnel.Order, error)
	// Taken tells which of the orders that an agent gave back were looked at.
	Taken(clusterUID types.UID, releases []string)
}

// Agents answers from the sessions.
type Agents interface {
	// Newest asks the cluster's agent for the newest report of a Release; nil when
	// the agent knows nothing of it.
	Newest(ctx context.Context, cluster tunnel.ClusterID, release types.UID) (*tunnel.Report, error)
}

// About is the object that an Event is about.
type About struct {
	// Kind is Release or Cluster.
	Kind string
	types.NamespacedName
	UID types.UID
}

// Recorder writes Events; nil records none.
type Recorder interface {
	// Transition is called once for each change of a Release's Ready condition.
	Transition(release *corev1alpha1.Release, warning bool, reason, message string)
	// Warn is called for what people should know of an object and no condition says.
	Warn(about About, reason, message string)
}
