// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientcache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Store is the part of a registry's store that a reflector needs. A context
// without a namespace means all of them.
type Store interface {
	List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error)
	Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error)
}

// run feeds one kind until ctx ends.
func (k *kind[T]) run(ctx context.Context) error {
	var expected T
	logger := klog.Logger(logr.FromContextOrDiscard(ctx))
	reflector := clientcache.NewReflectorWithOptions(lister{k.store}, expected, k, clientcache.ReflectorOptions{
		Name: "hub/cache." + k.name, Logger: &logger,
	})
	reflector.RunWithContext(ctx)
	return nil
}

// lister speaks to a registry's store as a reflector expects it of a client.
type lister struct{ store Store }

// IsWatchListSemanticsUnSupported keeps the reflector at list and watch: a list
// at version 0 comes from the memory of the registry's own cache.
func (lister) IsWatchListSemanticsUnSupported() bool { return true }

// List implements the older half of the interface.
func (l lister) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

// Watch implements the older half of the interface.
func (l lister) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}

// ListWithContext lists all namespaces.
func (l lister) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	in, err := internal(options)
	if err != nil {
		return nil, err
	}
	return l.store.List(ctx, in)
}

// WatchWithContext watches all namespaces. The registry hands one wrapped object
// to all its watchers when there are several; who reads it in process has to
// unwrap it.
func (l lister) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	in, err := internal(options)
	if err != nil {
		return nil, err
	}
	events, err := l.store.Watch(ctx, in)
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
		if wrapped, ok := event.Object.(runtime.CacheableObject); ok {
			event.Object = wrapped.GetObject()
		}
		return event, true
	}), nil
}

func internal(options metav1.ListOptions) (*metainternalversion.ListOptions, error) {
	out := &metainternalversion.ListOptions{}
	if err := metainternalversion.Convert_v1_ListOptions_To_internalversion_ListOptions(&options, out, nil); err != nil {
		return nil, fmt.Errorf("list options: %w", err)
	}
	return out, nil
}
