// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
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
	// Objects are the lines of the objects layer after its header.
	Objects [][]byte
}

// Releases is the hub's cache. What is returned is shared and read only.
type Releases interface {
	Release(key types.NamespacedName) (*v1alpha1.Release, bool)
}

// Check says whether a request with that body comes from the API server.
type Check func(r *http.Request, body []byte) error
