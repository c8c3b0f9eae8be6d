// SPDX-License-Identifier: Apache-2.0

// Package cache holds the hub's one in-process copy of its own objects. It
// stands beside the flow source -> render -> store -> deliver -> apply ->
// observe -> report: controllers, deliver, gateway and report read from it and
// never from etcd.
//
// Each kind is fed by one reflector straight on the registry's store. Objects
// lose managedFields and the last-applied annotation on their way in, are
// shared among all readers, and are never changed. A writer may put what it
// wrote into the cache at once; the watch does not take it back.
package cache

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientcache "k8s.io/client-go/tools/cache"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	extensionsv1alpha1 "kumodo.io/convoy/api/extensions/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
)

// Options of a Cache: what the reflectors of the kinds read from, in process. Lists
// may share their objects with the registry's own cache.
type Options struct {
	Clusters clientcache.ListerWatcher
	Releases clientcache.ListerWatcher
	// Sources by their kind; one that is not there is not held.
	Sources map[string]clientcache.ListerWatcher
	// RuleSets and GlobalRuleSets hold health rules; nil: they are not held.
	RuleSets, GlobalRuleSets clientcache.ListerWatcher

	Registerer prometheus.Registerer
}

// Cache holds Clusters, Releases, sources and rule sets. Safe for any number of readers; what
// it returns is shared and read only.
type Cache struct {
	clusters *kind[*corev1alpha1.Cluster]
	releases *kind[*corev1alpha1.Release]
	sources  map[string]sourceKind
	// rules of a namespace and global ones; nil: they are not held.
	rules  *kind[*extensionsv1alpha1.HealthRuleSet]
	global *kind[*extensionsv1alpha1.GlobalHealthRuleSet]

	// ready is closed by the last kind that is complete.
	ready      chan struct{}
	incomplete atomic.Int32
}

// Names of the indexes of Releases.
const (
	byCluster = "cluster"
	bySource  = "source"
	// byNamespace is the one of HealthRuleSets.
	byNamespace = "namespace"
)

// New makes an empty Cache. It starts nothing.
func New(options Options) *Cache {
	c := &Cache{
		ready:    make(chan struct{}),
		clusters: newKind("Cluster", options.Clusters, func(in *corev1alpha1.Cluster) *corev1alpha1.Cluster { out := *in; return &out }, nil),
		releases: newKind("Release", options.Releases, func(in *corev1alpha1.Release) *corev1alpha1.Release { out := *in; return &out },
			map[string]func(*corev1alpha1.Release) indexKey{
				byCluster: func(r *corev1alpha1.Release) indexKey {
					return indexKey{namespace: r.Namespace, name: r.Spec.ClusterRef.Name}
				},
				bySource: func(r *corev1alpha1.Release) indexKey {
					return indexKey{kind: r.Spec.Source.Kind, namespace: r.Namespace, name: r.Spec.Source.Name}
				},
			}),
		sources: map[string]sourceKind{},
	}
	complete := func() {
		if c.incomplete.Add(-1) == 0 {
			close(c.ready)
		}
	}
	c.clusters.onComplete, c.releases.onComplete = complete, complete
	for _, name := range sourcev1alpha1.Kinds() {
		if from := options.Sources[name]; from != nil {
			c.sources[name] = newSources(name, from, complete)
		}
	}
	kinds := 2 + len(c.sources)
	if options.RuleSets != nil && options.GlobalRuleSets != nil {
		c.makeRules(options, complete)
		kinds += 2
	}
	c.incomplete.Store(int32(kinds)) //nolint:gosec // a handful
	register(options.Registerer, c)
	return c
}

// Run fills the cache and keeps it current until ctx ends.
func (c *Cache) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.clusters.run(ctx) })
	for _, store := range c.sources {
		group.Go(func() error { return store.run(ctx) })
	}
	if c.rules != nil {
		group.Go(func() error { return c.rules.run(ctx) })
		group.Go(func() error { return c.global.run(ctx) })
	}
	group.Go(func() error { return c.releases.run(ctx) })
	return group.Wait()
}

// Ready is closed when each kind had its first complete list.
func (c *Cache) Ready() <-chan struct{} { return c.ready }

// Release by namespace and name.
func (c *Cache) Release(key types.NamespacedName) (*corev1alpha1.Release, bool) {
	return c.releases.get(key)
}

// ReleaseByUID finds a Release by its UID.
func (c *Cache) ReleaseByUID(uid types.UID) (*corev1alpha1.Release, bool) {
	return c.releases.byUID(uid)
}

// Releases lists all, in no order.
func (c *Cache) Releases() []*corev1alpha1.Release { return c.releases.list() }

// ReleasesByCluster lists the Releases of a Cluster, in no order.
func (c *Cache) ReleasesByCluster(cluster types.NamespacedName) []*corev1alpha1.Release {
	return c.releases.indexed(byCluster, indexKey{namespace: cluster.Namespace, name: cluster.Name})
}

// ReleasesBySource lists the Releases that name a source, in no order.
func (c *Cache) ReleasesBySource(sourceKind string, source types.NamespacedName) []*corev1alpha1.Release {
	return c.releases.indexed(bySource, indexKey{kind: sourceKind, namespace: source.Namespace, name: source.Name})
}

// ReleasesReferringTo lists the Releases whose status names the digest of a layer: as
// their render, as applied, in their order or in their history. It looks at all of them, and is for
// what is rarely asked.
func (c *Cache) ReleasesReferringTo(digest string) []*corev1alpha1.Release {
	var out []*corev1alpha1.Release
	for _, release := range c.releases.list() {
		if refersTo(&release.Status, digest) {
			out = append(out, release)
		}
	}
	return out
}

func refersTo(status *corev1alpha1.ReleaseStatus, digest string) bool {
	if status.RenderRef == digest || status.AppliedRef == digest {
		return true
	}
	if status.Render != nil && (status.Render.Objects.Digest == digest || status.Render.Sealed.Digest == digest) {
		return true
	}
	if status.Order != nil && strings.Contains(status.Order.Payload, digest) {
		return true // as health rules, which stand in the order alone
	}
	for i := range status.History {
		if status.History[i].RenderRef == digest || status.History[i].Sealed.Digest == digest {
			return true
		}
	}
	return false
}

// Cluster by namespace and name.
func (c *Cache) Cluster(key types.NamespacedName) (*corev1alpha1.Cluster, bool) {
	return c.clusters.get(key)
}

// ClusterByUID finds a Cluster by its UID.
func (c *Cache) ClusterByUID(uid types.UID) (*corev1alpha1.Cluster, bool) {
	return c.clusters.byUID(uid)
}

// Clusters lists all, in no order.
func (c *Cache) Clusters() []*corev1alpha1.Cluster { return c.clusters.list() }

// OnRelease adds a handler of changes: old is nil for a new object, next for
// one that is gone. Handlers are added before Run, are called in the order of
// the changes, must not block and must not put.
func (c *Cache) OnRelease(handler func(old, next *corev1alpha1.Release)) { c.releases.on(handler) }

// OnCluster adds a handler of changes, as OnRelease.
func (c *Cache) OnCluster(handler func(old, next *corev1alpha1.Cluster)) { c.clusters.on(handler) }

// PutRelease takes over an object that was just written, so that who reads next
// sees it. An older one than the cache has is ignored.
func (c *Cache) PutRelease(release *corev1alpha1.Release) { c.releases.put(release) }

// PutCluster takes over an object that was just written.
func (c *Cache) PutCluster(cluster *corev1alpha1.Cluster) { c.clusters.put(cluster) }

// object is what the cache holds.
type object interface {
	runtime.Object
	metav1.Object
	comparable
}
