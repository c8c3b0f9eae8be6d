// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clientcache "k8s.io/client-go/tools/cache"
)

// indexKey is a value of an index.
type indexKey struct{ kind, namespace, name string }

// kind holds the objects of one kind. It is the store that its reflector feeds.
type kind[T object] struct {
	// Static.
	name    string
	source  clientcache.ListerWatcher
	shallow func(T) T
	indexes map[string]func(T) indexKey
	// onComplete is called once, after the first complete list.
	onComplete func()

	// order makes changes and their handlers one after another. Held while
	// handlers run, so that no handler sees changes out of order; readers do not
	// need it.
	order    sync.Mutex
	handlers []func(old, next T)
	// seen is the resource version up to which the watch has told; guarded by order.
	seen uint64
	// complete: there was a complete list; guarded by order.
	complete bool

	// mu guards the maps below, for the short time of a look-up or change.
	mu      sync.RWMutex
	objects map[types.NamespacedName]T
	uids    map[types.UID]T
	inIndex map[string]map[indexKey]map[types.NamespacedName]T
}

func newKind[T object](name string, source clientcache.ListerWatcher, shallow func(T) T, indexes map[string]func(T) indexKey) *kind[T] {
	k := &kind[T]{
		name: name, source: source, shallow: shallow, indexes: indexes,
		objects: map[types.NamespacedName]T{}, uids: map[types.UID]T{},
		inIndex: map[string]map[indexKey]map[types.NamespacedName]T{},
	}
	for index := range indexes {
		k.inIndex[index] = map[indexKey]map[types.NamespacedName]T{}
	}
	return k
}

func (k *kind[T]) on(handler func(old, next T)) {
	k.order.Lock()
	defer k.order.Unlock()
	k.handlers = append(k.handlers, handler)
}

func (k *kind[T]) get(key types.NamespacedName) (T, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	out, ok := k.objects[key]
	return out, ok
}

func (k *kind[T]) byUID(uid types.UID) (T, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	out, ok := k.uids[uid]
	return out, ok
}

func (k *kind[T]) list() []T {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return values(k.objects)
}

func (k *kind[T]) indexed(index string, key indexKey) []T {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return values(k.inIndex[index][key])
}

func (k *kind[T]) count() int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return len(k.objects)
}

func values[T any](in map[types.NamespacedName]T) []T {
	out := make([]T, 0, len(in))
	for _, object := range in {
		out = append(out, object)
	}
	return out
}

// put takes over what a writer wrote. The watch may have told of that version,
// or of the object's end, already: then there is nothing to do.
func (k *kind[T]) put(object T) {
	version, err := versionOf(object)
	if err != nil {
		// What a registry's store returns has a version; the watch will tell.
		return
	}
	k.order.Lock()
	defer k.order.Unlock()
	if version <= k.seen {
		return
	}
	k.setLocked(k.slim(object), version)
}

// slim drops what no reader needs. The rest is shared with the original.
func (k *kind[T]) slim(object T) T {
	out := k.shallow(object)
	out.SetManagedFields(nil)
	if annotations := out.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		kept := make(map[string]string, len(annotations)-1)
		for key, value := range annotations {
			if key != corev1.LastAppliedConfigAnnotation {
				kept[key] = value
			}
		}
		out.SetAnnotations(kept)
	}
	return out
}

// setLocked stores a newer version and tells the handlers. The lock order is held.
func (k *kind[T]) setLocked(object T, version uint64) {
	key := keyOf(object)
	var none T
	k.mu.Lock()
	old, exists := k.objects[key]
	if exists {
		if had, err := versionOf(old); err == nil && had >= version {
			k.mu.Unlock()
			return
		}
		k.removeMapsLocked(key, old)
	}
	k.objects[key] = object
	k.uids[object.GetUID()] = object
	for index, value := range k.indexes {
		at := value(object)
		bucket := k.inIndex[index][at]
		if bucket == nil {
			bucket = map[types.NamespacedName]T{}
			k.inIndex[index][at] = bucket
		}
		bucket[key] = object
	}
	k.mu.Unlock()
	if exists && old.GetUID() != object.GetUID() {
		// Deleted and made anew between two looks.
		k.tellLocked(old, none)
		old = none
	}
	k.tellLocked(old, object)
}

// removeLocked forgets an object unless a newer version is there. The lock order is held.
func (k *kind[T]) removeLocked(key types.NamespacedName, version uint64) {
	var none T
	k.mu.Lock()
	old, exists := k.objects[key]
	if had, err := versionOf(old); !exists || err == nil && had > version {
		k.mu.Unlock()
		return
	}
	k.removeMapsLocked(key, old)
	k.mu.Unlock()
	k.tellLocked(old, none)
}

// removeMapsLocked takes an object out of all maps; mu is held.
func (k *kind[T]) removeMapsLocked(key types.NamespacedName, old T) {
	delete(k.objects, key)
	delete(k.uids, old.GetUID())
	for index, value := range k.indexes {
		at := value(old)
		bucket := k.inIndex[index][at]
		delete(bucket, key)
		if len(bucket) == 0 {
			delete(k.inIndex[index], at)
		}
	}
}

func (k *kind[T]) tellLocked(old, next T) {
	for _, handler := range k.handlers {
		handler(old, next)
	}
}

// Add is called by the reflector.
func (k *kind[T]) Add(in any) error { return k.Update(in) }

// Update is called by the reflector.
func (k *kind[T]) Update(in any) error {
	object, version, err := k.typed(in)
	if err != nil {
		return err
	}
	k.order.Lock()
	defer k.order.Unlock()
	k.seen = max(k.seen, version)
	k.setLocked(k.slim(object), version)
	return nil
}

// Delete is called by the reflector. The version of what it brings is that of
// the deletion.
func (k *kind[T]) Delete(in any) error {
	object, version, err := k.typed(in)
	if err != nil {
		return err
	}
	k.order.Lock()
	defer k.order.Unlock()
	k.seen = max(k.seen, version)
	k.removeLocked(keyOf(object), version)
	return nil
}

// Replace is called by the reflector with a complete list. What a writer put in
// after that list was made stays.
func (k *kind[T]) Replace(list []any, resourceVersion string) error {
	listed, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return fmt.Errorf("list of %s: resource version %q: %w", k.name, resourceVersion, err)
	}
	k.order.Lock()
	defer k.order.Unlock()
	k.seen = max(k.seen, listed)
	found := make(map[types.NamespacedName]struct{}, len(list))
	for _, in := range list {
		object, version, err := k.typed(in)
		if err != nil {
			return err
		}
		found[keyOf(object)] = struct{}{}
		k.setLocked(k.slim(object), version)
	}
	for _, object := range k.list() {
		key := keyOf(object)
		if _, ok := found[key]; !ok {
			k.removeLocked(key, listed)
		}
	}
	if !k.complete {
		k.complete = true
		k.onComplete()
	}
	return nil
}

// Resync is called by the reflector; controllers resync by themselves.
func (k *kind[T]) Resync() error { return nil }

// Bookmark is called by the reflector when the watch says how far it has come.
func (k *kind[T]) Bookmark(resourceVersion string) error {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return fmt.Errorf("bookmark of %s: resource version %q: %w", k.name, resourceVersion, err)
	}
	k.order.Lock()
	defer k.order.Unlock()
	k.seen = max(k.seen, version)
	return nil
}

func (k *kind[T]) typed(in any) (T, uint64, error) {
	object, ok := in.(T)
	if !ok {
		return object, 0, fmt.Errorf("the watch of %s brought a %T", k.name, in)
	}
	version, err := versionOf(object)
	return object, version, err
}

func keyOf[T object](object T) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// versionOf compares by the number that etcd gives to each change. A nil
// object has none.
func versionOf[T object](object T) (uint64, error) {
	var none T
	if object == none {
		return 0, nil
	}
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resource version of %s: %w", keyOf(object), err)
	}
	return version, nil
}
