// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/controller"
	"kumodo.io/convoy/hub/deliver"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/pkg/tunnel"
)

// Cache is the hub's cache. What is returned is shared and read only.
type Cache interface {
	Release(key types.NamespacedName) (*corev1alpha1.Release, bool)
	Cluster(key types.NamespacedName) (*corev1alpha1.Cluster, bool)
	Source(kind string, key types.NamespacedName) (sourcev1alpha1.Source, bool)
}

// Index finds the Releases that a change concerns.
type Index interface {
	ReleaseByUID(uid types.UID) (*corev1alpha1.Release, bool)
	ReleasesByCluster(cluster types.NamespacedName) []*corev1alpha1.Release
	ReleasesBySource(kind string, source types.NamespacedName) []*corev1alpha1.Release
}

// Revision is one state of a source.
type Revision struct {
	// Display is for people, as in main@sha1:<commit>; Commit alone decides.
	Display, Commit string
	// Detail is the rooms' own.
	Detail any
}

// Sources fetch. Errors that are a controller.Reasoned name their reason.
type Sources interface {
	// Resolve says where a ref is: that of the source, or another one. The
	// remote is asked only when the answer that is known is older than maxAge.
	Resolve(ctx context.Context, object sourcev1alpha1.Source, ref string, maxAge time.Duration) (Revision, error)
	// Snapshot is the content at a revision.
	Snapshot(ctx context.Context, object sourcev1alpha1.Source, revision Revision) (Snapshot, error)
}

// Snapshot is the content of a source at one revision, shared by all who look.
type Snapshot interface {
	// PathDigest is that of all below a path.
	PathDigest(path string) (string, error)
}

// Job is what is to be rendered.
type Job struct {
	// Tenant whose input it is: the namespace.
	Tenant    string
	Snapshot  Snapshot
	Path      string
	Namespace string
	// AllowEmpty: no objects are a render of nothing.
	AllowEmpty bool
}

// Rendered is a render as stored.
type Rendered struct {
	Objects tunnel.Layer
	// Sealed is nil when no value was sealed.
	Sealed *tunnel.Layer
	Count  int32
}

// Renderer makes renders. Errors that are a controller.Reasoned name their reason.
type Renderer interface {
	// InputsHash of a render, without making it.
	InputsHash(pathDigest, namespace string) string
	Render(ctx context.Context, job Job) (Rendered, error)
}

// Orders are what clusters are to do.
type Orders interface {
	// Ordered is the current apply order, if this hub signed it.
	Ordered(release types.UID) (tunnel.Order, bool)
	// Compared says whether the Cluster's agent has told what it holds.
	Compared(cluster types.UID) bool
	// Issue returns what makes the next one.
	Issue(intent deliver.Intent) func(last int64) (corev1alpha1.OrderStatus, error)
}

// Graves keep the last orders of deleted Releases.
type Graves interface {
	Buried(release types.UID) (deliver.Tombstone, bool)
	Bury(ctx context.Context, release *corev1alpha1.Release, cluster types.UID, verb tunnel.Verb) (deliver.Tombstone, error)
}

// Reporter writes the status.
type Reporter interface {
	Release(ctx context.Context, key types.NamespacedName, uid types.UID, outcome report.Outcome) error
	DeleteInventory(ctx context.Context, key types.NamespacedName) error
}

// Store is the registry's store of Releases.
type Store interface {
	RemoveFinalizer(ctx context.Context, key types.NamespacedName, uid types.UID, finalizer string) error
}

// Namespaces are the host's; nil in standalone mode.
type Namespaces interface {
	State(ctx context.Context, name string) (controller.NamespaceState, error)
}
