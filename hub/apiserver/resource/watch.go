// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"fmt"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// ListWatch is what a cache.Reflector of all namespaces reads from: lists come
// from the watch cache, whose objects are shared, so a transform must copy what
// it changes.
func (s *Store[T, L]) ListWatch() cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			options, err := internal(o)
			if err != nil {
				return nil, err
			}
			return s.main.List(in(ctx, metav1.NamespaceAll), options)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			options, err := internal(o)
			if err != nil {
				return nil, err
			}
			w, err := s.main.Watch(in(ctx, metav1.NamespaceAll), options)
			if err != nil {
				return nil, fmt.Errorf("watch %s: %w", s.main.DefaultQualifiedResource, err)
			}
			return watch.Filter(w, unwrap), nil
		},
	}
}

// unwrap takes an object out of the wrapper that the watch cache puts around it,
// once several watchers look on, so that it is encoded only once for HTTP.
func unwrap(e watch.Event) (watch.Event, bool) {
	if c, ok := e.Object.(runtime.CacheableObject); ok {
		e.Object = c.GetObject()
	}
	return e, true
}

// internal turns a client's options into the registry's.
func internal(o metav1.ListOptions) (*metainternalversion.ListOptions, error) {
	out := &metainternalversion.ListOptions{
		Watch:                o.Watch,
		AllowWatchBookmarks:  o.AllowWatchBookmarks,
		ResourceVersion:      o.ResourceVersion,
		ResourceVersionMatch: o.ResourceVersionMatch,
		TimeoutSeconds:       o.TimeoutSeconds,
		Limit:                o.Limit,
		Continue:             o.Continue,
		SendInitialEvents:    o.SendInitialEvents,
	}
	if o.FieldSelector != "" {
		f, err := fields.ParseSelector(o.FieldSelector)
		if err != nil {
			return nil, fmt.Errorf("parse field selector: %w", err)
		}
		out.FieldSelector = f
	}
	return out, nil
}
