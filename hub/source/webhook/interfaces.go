// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/source/v1alpha1"
)

// Sources are those of the hub's cache.
type Sources interface {
	Source(kind string, key types.NamespacedName) (v1alpha1.Source, bool)
}

// SecretGetter reads Secrets of the host cluster.
type SecretGetter interface {
	GetSecret(ctx context.Context, namespace, name string) (map[string][]byte, error)
}
