// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	clientcache "k8s.io/client-go/tools/cache"

	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
)

// sourceKind is one kind of sources, whatever its type.
type sourceKind interface {
	run(ctx context.Context) error
	source(key types.NamespacedName) (sourcev1alpha1.Source, bool)
	sources() []sourcev1alpha1.Source
	onSource(handler func(old, next sourcev1alpha1.Source))
	putSource(source sourcev1alpha1.Source)
	count() int
}

// typedSources is a kind seen as a sourceKind.
type typedSources[T sourceObject] struct{ *kind[T] }

type sourceObject interface {
	object
	sourcev1alpha1.Source
}

// newSources makes the store of one kind.
func newSources(name string, from clientcache.ListerWatcher, complete func()) sourceKind {
	switch name {
	case sourcev1alpha1.KindGitRepository:
		return typed(name, from, complete, func(in *sourcev1alpha1.GitRepository) *sourcev1alpha1.GitRepository { out := *in; return &out })
	case sourcev1alpha1.KindHelmRegistry:
		return typed(name, from, complete, func(in *sourcev1alpha1.HelmRegistry) *sourcev1alpha1.HelmRegistry { out := *in; return &out })
	case sourcev1alpha1.KindOCIRegistry:
		return typed(name, from, complete, func(in *sourcev1alpha1.OCIRegistry) *sourcev1alpha1.OCIRegistry { out := *in; return &out })
	default:
		return nil
	}
}

func typed[T sourceObject](name string, from clientcache.ListerWatcher, complete func(), shallow func(T) T) sourceKind {
	k := newKind(name, from, shallow, nil)
	k.onComplete = complete
	return typedSources[T]{k}
}

func (s typedSources[T]) source(key types.NamespacedName) (sourcev1alpha1.Source, bool) {
	found, ok := s.get(key)
	if !ok {
		return nil, false // not a nil object in an interface
	}
	return found, true
}

func (s typedSources[T]) sources() []sourcev1alpha1.Source {
	list := s.list()
	out := make([]sourcev1alpha1.Source, 0, len(list))
	for _, source := range list {
		out = append(out, source)
	}
	return out
}

func (s typedSources[T]) onSource(handler func(old, next sourcev1alpha1.Source)) {
	var none T
	s.on(func(old, next T) {
		var was, is sourcev1alpha1.Source
		if old != none {
			was = old
		}
		if next != none {
			is = next
		}
		handler(was, is)
	})
}

func (s typedSources[T]) putSource(source sourcev1alpha1.Source) {
	if object, ok := source.(T); ok {
		s.put(object)
	}
}

// Source of a kind, by namespace and name.
func (c *Cache) Source(kind string, key types.NamespacedName) (sourcev1alpha1.Source, bool) {
	store := c.sources[kind]
	if store == nil {
		return nil, false
	}
	return store.source(key)
}

// Sources lists all of a kind, in no order.
func (c *Cache) Sources(kind string) []sourcev1alpha1.Source {
	store := c.sources[kind]
	if store == nil {
		return nil
	}
	return store.sources()
}

// OnSource adds a handler of changes of all kinds of sources, as OnRelease.
func (c *Cache) OnSource(handler func(old, next sourcev1alpha1.Source)) {
	for _, store := range c.sources {
		store.onSource(handler)
	}
}

// PutSource takes over an object that was just written.
func (c *Cache) PutSource(source sourcev1alpha1.Source) {
	if store := c.sources[source.SourceKind()]; store != nil {
		store.putSource(source)
	}
}
