// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"

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
	Clusters() []*corev1alpha1.Cluster
}

// Sources are those of the hub's cache.
type Sources interface {
	GitRepository(key types.NamespacedName) (*sourcev1alpha1.GitRepository, bool)
}

// Memory is told of what was written, before the watch tells it.
type Memory interface {
	PutRelease(release *corev1alpha1.Release)
	PutCluster(cluster *corev1alpha1.Cluster)
	PutGitRepository(repository *sourcev1alpha1.GitRepository)
}

// StatusStore is the registry's store behind a status subresource.
type StatusStore interface {
	rest.Updater
}

// InventoryStore is the registry's store of ReleaseInventories.
type InventoryStore interface {
	rest.Getter
	rest.Creater
	rest.Updater
	rest.GracefulDeleter
}

// Orders keeps the last orders of deleted Releases.
type Orders interface {
	// Done tells that the agent carried a remove or release order out.
	Done(ctx context.Context, clusterUID, releaseUID types.UID, sequence int64) error
}

// Agents answers from the sessions.
type Agents interface {
	// Newest asks the cluster's agent for the newest report of a Release; nil when
	// the agent knows nothing of it.
	Newest(ctx context.Context, cluster tunnel.ClusterID, release types.UID) (*tunnel.Report, error)
}

// Recorder writes Events; nil records none.
type Recorder interface {
	// Transition is called once for each change of a Release's Ready condition.
	Transition(release *corev1alpha1.Release, warning bool, reason, message string)
}
