// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/controller"
	"kumodo.io/convoy/hub/deliver"
	"kumodo.io/convoy/hub/render"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/hub/source"
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

// Sources fetch. Errors that are a controller.Reasoned name their reason.
type Sources interface {
	// Resolve says where a source is now. The remote is asked only when the answer that
	// is known is older than maxAge.
	Resolve(ctx context.Context, want source.Want, maxAge time.Duration) (source.Revision, error)
	// Snapshot is the content at a revision, shared by all who look.
	Snapshot(ctx context.Context, want source.Want, revision source.Revision) (render.Source, error)
	// Others looks up what stands elsewhere, each once for a revision of the source.
	Others(want source.Want, revision source.Revision, secrets, checked []string) Others
}

// Others looks up what a render needs beside its source: digests of images, and charts
// that the source lacks.
type Others interface {
	render.Images
	render.Charts
}

// Texts reads what a Release of the host cluster's namespace refers to.
type Texts interface {
	// ConfigMap gives its data. ErrNotThere if there is none, source.ErrNoHostCluster if
	// there is nobody to ask.
	ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error)
	// Secret gives its data, with the same errors.
	Secret(ctx context.Context, namespace, name string) (map[string]string, error)
}

// Renderer makes renders. Errors that are a controller.Reasoned name their reason.
type Renderer interface {
	// InputsHash of a render that would read these facts, without making it.
	InputsHash(ctx context.Context, job render.Job, reads []string) (string, error)
	Render(ctx context.Context, job render.Job) (render.Result, error)
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

// Rules knows the health rules of Releases.
type Rules interface {
	// Rules gives the layer of rules that a Release is judged by, which is in the store
	// when it returns, and what these read of cluster and self. The layer is nil when those
	// that are built in are all there are; cluster is nil while there is none. An error
	// tells a person what is missing or broken.
	Rules(ctx context.Context, release *corev1alpha1.Release, cluster *corev1alpha1.Cluster) (layer *tunnel.Layer, facts map[string]string, err error)
}

// Graves keep the last orders of deleted Releases.
type Graves interface {
	Buried(release types.UID) (deliver.Tombstone, bool)
	Bury(ctx context.Context, release *corev1alpha1.Release, cluster types.UID, last deliver.Last) (deliver.Tombstone, error)
}

// Reporter writes the status.
type Reporter interface {
	Release(ctx context.Context, key types.NamespacedName, uid types.UID, outcome report.Outcome) error
	// Fence of the inventory that is known; empty: none is.
	Fence(ctx context.Context, key types.NamespacedName, uid types.UID) (string, error)
	// Inventory is what is known to be on the target; not to be changed.
	Inventory(ctx context.Context, key types.NamespacedName, uid types.UID) ([]corev1alpha1.InventoryEntry, error)
	DeleteInventory(ctx context.Context, key types.NamespacedName) error
}

// Layers are the objects layers of renders.
type Layers interface {
	Open(ctx context.Context, digest string) (io.ReadCloser, int64, error)
}

// Store is the registry's store of Releases.
type Store interface {
	RemoveFinalizer(ctx context.Context, key types.NamespacedName, uid types.UID, finalizer string) error
}

// Namespaces are the host's; nil in standalone mode.
type Namespaces interface {
	State(ctx context.Context, name string) (controller.NamespaceState, error)
}
