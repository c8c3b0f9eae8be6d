// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"context"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// Previewer renders a Release as it is given, without a trace: it writes no status and
// makes no order. A revision, if given, is used in place of the one in its spec. Errors
// that are a Reasoned are told to the user.
type Previewer interface {
	Preview(ctx context.Context, release *v1alpha1.Release, revision string) (Result, error)
}

// Result is one render.
type Result struct {
	// Digest of the objects layer.
	Digest          string
	SourceRevision  string
	TargetNamespace string
	Provenance      *v1alpha1.Provenance
	Reads, Warnings []string
	// Hooks counts the objects that are hooks.
	Hooks int
	// Objects are the lines of the objects layer after its header.
	Objects [][]byte
}

// Releases is the hub's cache. What is returned is shared and read only.
type Releases interface {
	Release(key types.NamespacedName) (*v1alpha1.Release, bool)
	Cluster(key types.NamespacedName) (*v1alpha1.Cluster, bool)
}

// Agents are asked how the objects of a Release are now; yield is called for each, the
// worst first. Errors: ErrAway, tunnel.ErrNoRelease, tunnel.ErrNoLive, and those of an
// answer that broke off.
type Agents interface {
	Live(ctx context.Context, clusterUID, releaseUID string, view tunnel.LiveView, yield func(tunnel.LiveObject) error) (tunnel.LiveEnd, error)
}

// Inventories are read from etcd. One that is not there is the API's NotFound.
type Inventories interface {
	Get(ctx context.Context, key types.NamespacedName) (*v1alpha1.ReleaseInventory, error)
}

// Renders opens the objects layer of a render; ErrNoRender if it is not stored.
type Renders interface {
	Open(ctx context.Context, digest string) (io.ReadCloser, error)
}

// Check says whether a request with that body comes from the API server.
type Check func(r *http.Request, body []byte) error
