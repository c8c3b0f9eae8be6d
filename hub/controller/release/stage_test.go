// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientcache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/apiservertest"
	"kumodo.io/convoy/hub/cache"
	"kumodo.io/convoy/hub/controller"
	"kumodo.io/convoy/hub/controller/cluster"
	"kumodo.io/convoy/hub/controller/release"
	sourcecontroller "kumodo.io/convoy/hub/controller/source"
	"kumodo.io/convoy/hub/deliver"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/pkg/tunnel"
)

// stage is a hub on a real API server, with its cache, report, deliver and
// controllers; of it only source, render and gateway are played by the test.
type stage struct {
	t      *testing.T
	server *apiservertest.Server
	git    *git
	host   *namespaces // nil: standalone
	// clusterClock is that of the controller of Clusters, nil: a real one.
	clusterClock clock.PassiveClock
	texts        release.Texts // nil: standalone
	hubVersion   string

	// Of the running hub.
	cache    *cache.Cache
	orders   *deliver.Deliverer
	reporter *report.Reporter
	renderer *renderer
	releases *release.Reconciler
	stop     func()
	cluster  tunnel.ClusterID
	resync   time.Duration
	// signWith is the key of orders, nil: that of the keyring; accept are others.
	signWith ed25519.PrivateKey
	accept   []ed25519.PublicKey
}

// namespaces are the host's.
type namespaces struct {
	mu    sync.Mutex
	state controller.NamespaceState
	err   error
}

func (n *namespaces) State(context.Context, string) (controller.NamespaceState, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state, n.err
}

// newStage is called once by a test, which goes on beside others then: it waits more than
// it computes.
func newStage(t *testing.T, options ...func(*stage)) *stage {
	t.Helper()
	t.Parallel()
	return newStageAlone(t, options...)
}

// newStageAlone is for a test that has more to do than a machine can do beside others.
func newStageAlone(t *testing.T, options ...func(*stage)) *stage {
	t.Helper()
	s := &stage{t: t, server: apiservertest.Start(t), git: &git{commit: "1", content: map[string]string{"app": "one"}}, resync: time.Hour, hubVersion: "v1"}
	for _, option := range options {
		option(s)
	}
	s.start()
	t.Cleanup(func() { s.stop() })
	made, err := s.server.Storage().Clusters.Create(t.Context(), &corev1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "edge"}, Spec: corev1alpha1.ClusterSpec{ConnectionMode: corev1alpha1.ConnectionModeAgent},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.cluster = tunnel.ClusterID{Namespace: "team", Name: "edge", UID: string(made.UID)}
	_, err = s.server.Storage().GitRepositories.Create(t.Context(), &sourcev1alpha1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "apps"}, Spec: sourcev1alpha1.GitRepositorySpec{URL: "https://git.example/apps", Ref: sourcev1alpha1.GitRef{Branch: "main"}, Interval: &metav1.Duration{Duration: time.Minute}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func withHost(s *stage) { s.host = &namespaces{} }

// withStoppedClock is for what takes as long as it takes: no Cluster goes since it has
// waited long enough for its Releases.
func withStoppedClock(s *stage) { s.clusterClock = clocktesting.NewFakePassiveClock(time.Now()) }

// start runs the hub's rooms; restart is stop and start.
func (s *stage) start() {
	s.t.Helper()
	storage := s.server.Storage()
	s.cache = cache.New(cache.Options{Clusters: storage.Clusters.ListWatch(), Releases: storage.Releases.ListWatch(), Sources: map[string]clientcache.ListerWatcher{"GitRepository": storage.GitRepositories.ListWatch()}})
	keys := s.server.Keyring
	signWith := keys.OrderKey.Private
	if s.signWith != nil {
		signWith = s.signWith
	}
	var err error
	s.orders, err = deliver.New(deliver.Options{HubID: keys.HubID, Key: signWith, Accept: s.accept, Releases: s.cache, Keys: s.server.EtcdClient()})
	if err != nil {
		s.t.Fatal(err)
	}
	s.reporter = report.New(report.Options{
		Releases: s.cache, Clusters: s.cache, Sources: s.cache, Memory: s.cache,
		ReleaseStore: storage.Releases, ClusterStore: storage.Clusters, SourceStores: map[string]report.SourceStore{"GitRepository": report.SourceStatus(storage.GitRepositories)}, Inventories: storage.Inventories,
		Orders: s.orders,
	})
	s.renderer = &renderer{}
	options := release.Options{
		KeyID: tunnel.KeyID(signWith.Public().(ed25519.PublicKey)), Cache: s.cache, Index: s.cache, Sources: s.git, Renderer: s.renderer,
		Orders: s.orders, Graves: s.orders, Reporter: s.reporter, Store: storage.Releases,
	}
	clusterOptions := cluster.Options{Cache: s.cache, Store: storage.Clusters, Releases: storage.Releases, Reporter: s.reporter, Orders: s.orders}
	clusterOptions.Clock = s.clusterClock
	if s.host != nil {
		options.Namespaces, clusterOptions.Namespaces = s.host, s.host
	}
	options.Texts, options.Version = s.texts, s.hubVersion
	releases, clusters := release.New(options), cluster.New(clusterOptions)
	s.releases = releases
	sources := sourcecontroller.New(sourcecontroller.Options{Kind: "GitRepository", Cache: s.cache, Checker: s.git, Reporter: s.reporter})
	s.orders.OnDone(releases.Done)
	s.orders.OnCompared(s.reporter.Compared)
	s.cache.OnRelease(s.reporter.ReleaseChanged)
	s.cache.OnRelease(s.orders.ReleaseChanged)
	s.cache.OnRelease(releases.Changed)
	s.cache.OnCluster(s.reporter.ClusterChanged)
	s.cache.OnCluster(clusters.Changed)
	s.cache.OnCluster(releases.ClusterChanged)
	s.cache.OnSource(sources.Changed)
	s.cache.OnSource(releases.SourceChanged)

	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.cache.Run(ctx) })
	group.Go(func() error { return s.reporter.Run(ctx) })
	group.Go(func() error { return s.orders.Run(ctx) })
	<-s.cache.Ready()
	<-s.orders.Loaded()
	run := func(name string, feed *controller.Feed, reconciler interface {
		Reconcile(context.Context, types.NamespacedName) (controllerResult, error)
	}, keys func() []types.NamespacedName,
	) {
		group.Go(func() error {
			return controller.Run(ctx, feed, reconciler, controller.Options{Name: name, Workers: 4, Resync: s.resync, Keys: keys})
		})
	}
	run("cluster", &clusters.Feed, clusters, func() []types.NamespacedName { return keysOf(s.cache.Clusters()) })
	run("gitrepository", &sources.Feed, sources, func() []types.NamespacedName { return keysOf(s.cache.Sources("GitRepository")) })
	run("release", &releases.Feed, releases, func() []types.NamespacedName { return keysOf(s.cache.Releases()) })
	s.stop = func() {
		cancel()
		if err := group.Wait(); err != nil {
			s.t.Error(err)
		}
	}
}

func keysOf[T metav1.Object](list []T) []types.NamespacedName {
	var out []types.NamespacedName
	for _, o := range list {
		out = append(out, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()})
	}
	return out
}

// connects makes a session of an agent that holds orders, by Release UID.
func (s *stage) connects(have map[string]int64) []string {
	return s.orders.Behind(s.cluster.UID, have)
}

func (s *stage) reachable(is bool) {
	s.t.Helper()
	if is {
		s.connects(nil)
	}
	err := s.reporter.Cluster(s.t.Context(), types.NamespacedName{Namespace: "team", Name: "edge"}, types.UID(s.cluster.UID), func(status *corev1alpha1.ClusterStatus) error {
		status.Reachable = is
		status.Agent = &corev1alpha1.ClusterAgentStatus{BoundKey: "a", JoinedAt: metav1.Now()}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) create(name string, change ...func(*corev1alpha1.Release)) *corev1alpha1.Release {
	s.t.Helper()
	r := &corev1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Spec: corev1alpha1.ReleaseSpec{
			ClusterRef: corev1alpha1.ClusterReference{Name: "edge"},
			Source:     corev1alpha1.SourceReference{Kind: "GitRepository", Name: "apps"},
			Content:    corev1alpha1.ReleaseContent{Path: "app", Manifests: &corev1alpha1.ManifestsContent{}},
			SyncPolicy: corev1alpha1.SyncPolicy{
				Automatic: ptr.To(true), Interval: &metav1.Duration{Duration: time.Minute}, Timeout: &metav1.Duration{Duration: time.Minute},
				Conflicts: corev1alpha1.ConflictsFail, Immutable: corev1alpha1.ImmutableReport, Prune: corev1alpha1.PrunePolicy{Orphaned: ptr.To(true)},
			},
		},
	}
	for _, c := range change {
		c(r)
	}
	out, err := s.server.Storage().Releases.Create(s.t.Context(), r)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *stage) edit(name string, change func(*corev1alpha1.Release)) {
	s.t.Helper()
	_, err := s.server.Storage().Releases.Update(s.t.Context(), key(name), "", func(r *corev1alpha1.Release) error { change(r); return nil })
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) remove(name string) {
	s.t.Helper()
	if err := s.server.Storage().Releases.Delete(s.t.Context(), key(name), ""); err != nil {
		s.t.Fatal(err)
	}
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: name}
}

const patience = 20 * time.Second

// until waits, by the changes of the cache, until a Release is as wanted; nil
// is passed when it is gone.
func (s *stage) until(name, what string, wanted func(*corev1alpha1.Release) bool) *corev1alpha1.Release {
	s.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		r, ok := s.cache.Release(key(name))
		if !ok {
			r = nil
		}
		if wanted(r) {
			return r
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			text, err := json.Marshal(r)
			s.t.Fatalf("%s never came to %s: %s %v", name, what, text, err)
		}
	}
}

func condition(r *corev1alpha1.Release, kind string) string {
	if r == nil {
		return "gone"
	}
	c := meta.FindStatusCondition(r.Status.Conditions, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

func (s *stage) untilCondition(name, kind, want string) *corev1alpha1.Release {
	s.t.Helper()
	return s.until(name, kind+"="+want, func(r *corev1alpha1.Release) bool { return condition(r, kind) == want })
}

func (s *stage) untilGone(name string) {
	s.t.Helper()
	s.until(name, "its end", func(r *corev1alpha1.Release) bool { return r == nil })
}

// applied plays the agent: all that was ordered is applied and well.
func (s *stage) applied(names ...string) {
	s.t.Helper()
	var reports []tunnel.Report
	for _, name := range names {
		r, ok := s.cache.Release(key(name))
		if !ok {
			s.t.Fatalf("there is no %s", name)
		}
		var order tunnel.Order
		s.eventually("the last order of "+name, func() bool {
			order, ok = s.orders.Ordered(r.UID)
			return ok && (r.Status.Order == nil || order.Sequence >= r.Status.Order.Sequence)
		})
		good := func(reason string) tunnel.Finding { return tunnel.Finding{Status: tunnel.True, Reason: reason} }
		reports = append(reports, tunnel.Report{
			Release: order.Release, Sequence: order.Sequence, Counter: order.Sequence, Settled: true, AppliedRef: order.Objects.Digest,
			Applied: good("Applied"), InSync: good("InSync"), Healthy: good("Healthy"), Counts: tunnel.Counts{Total: 3, Applied: 3, Healthy: 3},
			Inventory: []tunnel.InventoryEntry{{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: "a", UID: "u"}},
		})
	}
	answer := s.reporter.Observe(s.t.Context(), s.cluster, reports)
	if len(answer.Taken) != len(names) {
		s.t.Fatalf("reports were not taken: %+v", answer)
	}
}

// done plays the agent: it has carried out the last order.
func (s *stage) done(uid types.UID, sequence int64) {
	s.t.Helper()
	answer := s.reporter.Observe(s.t.Context(), s.cluster, []tunnel.Report{{
		Release: tunnel.ReleaseRef{UID: string(uid)}, Sequence: sequence, Counter: sequence, Settled: true, Done: true,
	}})
	if len(answer.Taken) != 1 {
		s.t.Fatalf("the report was not taken: %+v", answer)
	}
}

// ready makes a Release that is applied and well.
func (s *stage) ready(name string, change ...func(*corev1alpha1.Release)) *corev1alpha1.Release {
	s.t.Helper()
	s.create(name, change...)
	s.untilCondition(name, "Applied", "False Progressing")
	s.applied(name)
	return s.untilCondition(name, "Ready", "True Ready")
}

// version counts the changes of one object in etcd since it was made.
func (s *stage) version(prefix string) int64 {
	s.t.Helper()
	answer, err := s.server.EtcdClient().Get(s.t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		s.t.Fatal(err)
	}
	if len(answer.Kvs) != 1 {
		s.t.Fatalf("%d keys under %s, want 1", len(answer.Kvs), prefix)
	}
	return answer.Kvs[0].Version
}
