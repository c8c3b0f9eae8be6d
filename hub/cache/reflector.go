// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"

	"github.com/go-logr/logr"
	clientcache "k8s.io/client-go/tools/cache"
)

// run feeds one kind until ctx ends.
func (k *kind[T]) run(ctx context.Context) error {
	var expected T
	logger := logr.FromContextOrDiscard(ctx)
	reflector := clientcache.NewReflectorWithOptions(listFirst{k.source}, expected, k, clientcache.ReflectorOptions{
		Name: "hub/cache." + k.name, Logger: &logger,
	})
	reflector.RunWithContext(ctx)
	return nil
}

// listFirst keeps a reflector at list and watch: a list comes at once from the
// memory of the registry's own cache.
type listFirst struct{ clientcache.ListerWatcher }

// IsWatchListSemanticsUnSupported is asked for by the reflector.
func (listFirst) IsWatchListSemanticsUnSupported() bool { return true }
