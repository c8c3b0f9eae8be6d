// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver"
	"kumodo.io/convoy/hub/cache"
	"kumodo.io/convoy/hub/controller"
	"kumodo.io/convoy/hub/controller/cluster"
	"kumodo.io/convoy/hub/controller/healthrule"
	"kumodo.io/convoy/hub/controller/release"
	sourcecontroller "kumodo.io/convoy/hub/controller/source"
	"kumodo.io/convoy/hub/deliver"
	"kumodo.io/convoy/hub/etcd"
	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/keyring"
	"kumodo.io/convoy/hub/local"
	"kumodo.io/convoy/hub/options"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/hub/source"
	"kumodo.io/convoy/hub/source/address"
	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/pkg/trim"
	"kumodo.io/convoy/pkg/tunnel"
	"kumodo.io/convoy/pkg/version"
)

// Workers of the controllers. One that waits for a slow source or for a render
// takes no place from many others.
const (
	releaseWorkers = 64
	sourceWorkers  = 32
	clusterWorkers = 8
	ruleWorkers    = 2
)

// hub is one being built. Each field is set by one step of build.
type hub struct {
	config   *options.Config
	life     *lifecycle
	registry *prometheus.Registry
	ready    *readiness

	// Of the host cluster; nil in standalone mode.
	host       kubernetes.Interface
	dynamic    dynamic.Interface
	namespaces *controller.Namespaces

	keys    *keyring.Keyring
	server  *apiserver.Server
	cache   *cache.Cache
	objects store.Store
	sealed  store.Store
	// collector of unused renders; nil: there is none.
	collector *store.Collector
	secrets   source.SecretGetter
	sources   *source.Coordinator
	renderer  release.Renderer
	orders    *deliver.Deliverer
	reporter  *report.Reporter
	rules     *healthrule.Reconciler
	agents    *agents
	engines   *local.Manager
	gateway   *gateway.Gateway
	// observer is nil when there is none in this process.
	observer *watched
	// For requests that come while the hub is still being built.
	backups *backups
	sealer  atomic.Pointer[store.Sealer]
	known   atomic.Pointer[cache.Cache]
	seen    seen
}

// Run builds a hub and runs it until ctx ends or a part of it fails.
func Run(ctx context.Context, config *options.Config) error {
	h := &hub{config: config, life: newLifecycle(ctx), registry: prometheus.NewRegistry(), ready: &readiness{}, agents: &agents{}, backups: &backups{}}
	log := logr.FromContextOrDiscard(ctx)
	log.Info("The hub starts", "version", version.Version, "standalone", config.Standalone)
	err := h.build(ctx)
	if err == nil {
		log.Info("The hub serves", "hub", h.keys.HubID, "api", h.server.URL(), "gateway", h.gateway.Addr().String())
		select {
		case <-ctx.Done():
		case <-h.life.over:
		}
	}
	h.ready.stopping.Store(true)
	log.Info("The hub ends")
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // ended while it was starting, as it was asked to
	}
	if failed := h.life.stop(); !errors.Is(err, failed) {
		err = errors.Join(err, failed)
	}
	return err
}

// build starts the parts, each when those beneath it are there.
func (h *hub) build(ctx context.Context) error {
	steps := []func(context.Context) error{
		h.reachHost, h.loadKeys, h.listenObserver, h.startServer, h.makeCache, h.openStore, h.startSources, h.startRenderer,
		h.makeOrders, h.makeReporter, h.makeRules, h.makeEngines, h.makeGateway, h.startFlow,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
		if err := h.life.failure(); err != nil {
			return err
		}
	}
	h.ready.serving.Store(true)
	return nil
}

func (h *hub) reachHost(context.Context) error {
	if h.config.Standalone {
		return nil
	}
	client, err := kubernetes.NewForConfig(h.config.Host)
	if err != nil {
		return fmt.Errorf("make a client of the host: %w", err)
	}
	h.host = client
	h.namespaces = controller.NewNamespaces(client.CoreV1())
	if h.dynamic, err = dynamic.NewForConfig(h.config.Host); err != nil {
		return fmt.Errorf("make a client of the host: %w", err)
	}
	return nil
}

func (h *hub) loadKeys(ctx context.Context) error {
	var vault keyring.Vault
	if h.config.Standalone {
		vault = keyring.NewFileVault(h.config.KeyDir)
	} else {
		vault = keyring.NewSecretVault(h.host.CoreV1().Secrets(options.Namespace))
	}
	keys, err := keyring.Load(ctx, vault, clock.RealClock{})
	if err != nil {
		return fmt.Errorf("load the keys: %w", err)
	}
	h.keys = keys
	return nil
}

func (h *hub) startServer(ctx context.Context) error {
	if h.config.EtcdDir != "" {
		embedded, err := etcd.New(etcd.Options{Dir: h.config.EtcdDir, Registerer: h.registry})
		if err != nil {
			return fmt.Errorf("make the embedded etcd: %w", err)
		}
		h.life.start("etcd", embedded.Run)
		if err := h.life.wait(ctx, "etcd", embedded.Ready()); err != nil {
			return err
		}
		h.config.API.Etcd.StorageConfig.Transport.ServerList = []string{embedded.Endpoint()}
	}
	server, err := apiserver.New(ctx, apiserver.Config{
		Options: h.config.API, Host: h.config.Host, Serving: h.keys.ServingCA, HubCA: h.keys.HubCA.PEM,
		Join: apiserver.JoinInfo{
			GatewayURL: h.config.Gateway.URL, HubID: h.keys.HubID, HubCA: string(h.keys.GatewayCA().PEM), CAPin: h.keys.GatewayCA().Pin(),
			OrderKeys: h.orderKeyTexts(), AgentImage: h.config.AgentImage,
		},
		Hub: h.about, Backup: h.backups, Terminating: h.terminating,
		ObserverURL: h.config.Observer.URL, ProveToObserver: h.proveToObserver(),
		ReadyzChecks: []healthz.HealthChecker{h.ready},
		Logger:       logr.FromContextOrDiscard(ctx).WithName("apiserver"),
	})
	if err != nil {
		return fmt.Errorf("make the API server: %w", err)
	}
	h.server = server
	h.life.start("apiserver", server.Run)
	if h.config.MetricsAddr != "" {
		h.life.start("probes", func(ctx context.Context) error {
			return serveProbes(ctx, h.config.MetricsAddr, h.registry, server.Probes())
		})
	}
	if h.config.Standalone {
		if err := server.WriteAdminKubeconfig(h.config.AdminKubeconfig, h.keys.HubCA, h.keys.ServingCA.PEM); err != nil {
			return fmt.Errorf("write the administrator's kubeconfig: %w", err)
		}
		return nil
	}
	h.life.start("cabundles", func(ctx context.Context) error {
		return keyring.KeepCABundles(ctx, h.dynamic.Resource(keyring.APIServiceResource()), apiserver.APIServiceNames(), h.keys.ServingCA.PEM, clock.RealClock{})
	})
	return nil
}

func (h *hub) makeCache(context.Context) error {
	storage := h.server.Storage()
	h.cache = cache.New(cache.Options{
		Clusters: storage.Clusters.ListWatch(), Releases: storage.Releases.ListWatch(),
		Sources: sourceLists(storage), RuleSets: storage.HealthRuleSets.ListWatch(), GlobalRuleSets: storage.GlobalHealthRuleSets.ListWatch(),
		Registerer: h.registry,
	})
	h.known.Store(h.cache)
	return nil
}

func (h *hub) openStore(context.Context) error {
	backend, err := h.openBackend()
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	metrics, err := store.NewMetrics(h.registry)
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	keys := store.Keys{Current: store.Key(h.keys.SealingKey)}
	for _, old := range h.keys.OldSealingKeys {
		keys.Retired = append(keys.Retired, store.Key(old))
	}
	plain, sealer := store.NewPlain(backend), store.NewSealer(backend, keys)
	h.sealer.Store(sealer)
	h.objects = metrics.Instrument(metrics.Recover(plain, false, finder{h}), "objects")
	h.sealed = metrics.Instrument(metrics.Recover(sealer, true, finder{h}), "sealed")
	if h.config.StoreSweep > 0 {
		h.collector = store.NewCollector(store.CollectorOptions{
			Stores: map[string]store.Swept{"objects": plain, "sealed": sealer}, Roots: h.roots,
			Interval: h.config.StoreSweep, Metrics: metrics,
		})
	}
	return h.openBackup(backend)
}

func (h *hub) startSources(context.Context) error {
	h.secrets = noSecrets{}
	switch {
	case h.host != nil:
		h.secrets = hostSecrets{h.host.CoreV1()}
	case h.config.SecretsDir != "":
		h.secrets = fileSecrets{h.config.SecretsDir}
	}
	coordinator, err := source.New(source.Options{
		CacheDir: h.config.SourceDir, Allow: h.config.SourceAllow, Deny: serviceRange(os.Getenv("KUBERNETES_SERVICE_HOST")),
		Proxy: address.ProxyFromEnvironment(), Secrets: h.secrets, Registries: h.registriesOf, Registerer: h.registry,
	})
	if err != nil {
		return fmt.Errorf("make the coordinator of sources: %w", err)
	}
	h.sources = coordinator
	h.life.start(called("source", coordinator.Run))
	return nil
}

func (h *hub) makeOrders(context.Context) error {
	accept := make([]ed25519.PublicKey, 0, len(h.keys.OldOrderKeys))
	for _, key := range h.keys.OldOrderKeys {
		accept = append(accept, key.Public)
	}
	orders, err := deliver.New(deliver.Options{
		HubID: h.keys.HubID, Key: h.keys.OrderKey.Private, Accept: accept, Releases: h.cache, Keys: h.server.EtcdClient(), Registerer: h.registry,
	})
	if err != nil {
		return fmt.Errorf("make the orders: %w", err)
	}
	h.orders = orders
	return nil
}

func (h *hub) makeReporter(context.Context) error {
	storage := h.server.Storage()
	reportOptions := report.Options{
		Releases: h.cache, Clusters: h.cache, Sources: h.cache, Memory: h.cache,
		ReleaseStore: storage.Releases, ClusterStore: storage.Clusters, SourceStores: sourceStores(storage),
		RuleSets: h.cache, RuleSetStores: ruleSetStores(storage),
		Inventories: storage.Inventories, Orders: h.orders, Agents: h.agents, Registerer: h.registry,
	}
	if h.host != nil {
		recorder := report.NewHostRecorder(h.host.CoreV1(), h.terminating)
		reportOptions.Recorder = recorder
		h.life.start("events", recorder.Run)
	}
	h.reporter = report.New(reportOptions)
	h.server.RecordHeld(h.reporter)
	return nil
}

func (h *hub) makeGateway(context.Context) error {
	made, err := gateway.New(gateway.Options{
		Addr: h.config.Gateway.Addr, Plain: h.config.Gateway.Plain, Names: gatewayNames(h.config.Gateway.Addr, h.config.Gateway.URL),
		HubID: h.keys.HubID, CA: h.keys.HubCA.Certificate, CASigner: h.keys.HubCA.Signer,
		ServerCA: h.keys.GatewayCA().Certificate, ServerSigner: h.keys.GatewayCA().Signer,
		HubCAs: h.hubCAs, OrderKeys: h.orderKeys, Version: version.Version,
		Orders: h.orders, Blobs: blobs{h.objects, h.sealed}, Reports: h.reporter, Clusters: clusters{h.cache, h.reporter},
		Held: h.reporter, Resets: h.reporter, Occupied: h.engines.Occupies,
		Changed: func(id tunnel.ClusterID, connected bool) {
			if connected {
				h.seen.add(types.UID(id.UID))
				h.reporter.Connected(id)
			}
		},
		Notice:       h.reporter.Notice,
		DrainTimeout: waitForAgents(h.config.Gateway.Drain), Registerer: h.registry,
	})
	if err != nil {
		return fmt.Errorf("make the gateway: %w", err)
	}
	h.gateway, h.agents.gateway = made, made
	return nil
}

// startFlow connects the cache with all who are told of changes, and starts all
// that reads or writes objects. The gateway is the last: it takes sessions when
// the cache is complete, so that no agent is refused or told half.
func (h *hub) startFlow(ctx context.Context) error {
	storage := h.server.Storage()
	clusterOptions := cluster.Options{Cache: h.cache, Store: storage.Clusters, Releases: storage.Releases, Reporter: h.reporter, Orders: h.orders}
	releaseOptions := release.Options{
		KeyID: h.keys.OrderKey.KeyID, Version: version.Version, Cache: h.cache, Index: h.cache, Sources: sources{h.sources}, Renderer: h.renderer, Rules: h.rules,
		Orders: h.orders, Graves: h.orders, Reporter: h.reporter, Store: storage.Releases, Registerer: h.registry,
		Layers: h.objects,
	}
	texts := hostTexts{secrets: h.secrets}
	if h.host != nil {
		clusterOptions.Namespaces, releaseOptions.Namespaces = h.namespaces, h.namespaces
		texts.configMaps = h.host.CoreV1()
	}
	releaseOptions.Texts = texts
	releases := release.New(releaseOptions)
	clusters := cluster.New(clusterOptions)
	reconcilers := map[string]*sourcecontroller.Reconciler{}
	for _, kind := range sourcev1alpha1.Kinds() {
		reconcilers[kind] = sourcecontroller.New(sourcecontroller.Options{Kind: kind, Cache: h.cache, Checker: checker{h.sources}, Reporter: h.reporter})
		h.cache.OnSource(reconcilers[kind].Changed)
	}

	// Orders know of a Release before its controller looks at it.
	h.orders.OnDone(releases.Done)
	h.orders.OnCompared(h.reporter.Compared)
	h.orders.OnLeft(h.reporter.LeftBehind)
	h.orders.OnForgotten(h.reporter.Forgotten, h.reporter.NotGone)
	h.cache.OnRelease(h.orders.ReleaseChanged)
	h.cache.OnRelease(h.reporter.ReleaseChanged)
	h.cache.OnRelease(releases.Changed)
	h.cache.OnCluster(h.orders.ClusterChanged)
	h.cache.OnCluster(h.reporter.ClusterChanged)
	h.cache.OnCluster(clusters.Changed)
	h.cache.OnCluster(releases.ClusterChanged)
	h.cache.OnCluster(h.engines.Changed)
	h.cache.OnCluster(h.seen.clusterChanged)
	h.cache.OnCluster(func(old, next *v1alpha1.Cluster) {
		if next == nil {
			next = old
		}
		h.gateway.ClusterChanged(string(next.UID))
	})
	h.cache.OnSource(releases.SourceChanged)
	h.rules.Releases(releases.AddAfter)
	h.cache.OnRuleSet(h.rules.Changed)
	h.cache.OnRelease(h.rules.ReleaseChanged)

	h.life.start(called("cache", h.cache.Run))
	if err := h.life.wait(ctx, "the cache", h.cache.Ready()); err != nil {
		return err
	}
	h.life.start(called("deliver", h.orders.Run))
	if err := h.life.wait(ctx, "the stored orders", h.orders.Loaded()); err != nil {
		return err
	}
	h.life.start(called("report", h.reporter.Run))
	run := func(name string, feed *controller.Feed, reconciler reconcile.TypedReconciler[types.NamespacedName], workers int, keys func() []types.NamespacedName) {
		h.life.start(name, func(ctx context.Context) error {
			return controller.Run(ctx, feed, reconciler, controller.Options{Name: name, Workers: workers, Resync: h.config.Resync, Keys: keys})
		})
	}
	run("cluster", &clusters.Feed, clusters, clusterWorkers, func() []types.NamespacedName { return keysOf(h.cache.Clusters()) })
	for kind, reconciler := range reconcilers {
		run(strings.ToLower(kind), &reconciler.Feed, reconciler, sourceWorkers, func() []types.NamespacedName { return keysOf(h.cache.Sources(kind)) })
	}
	run("healthrule", &h.rules.Feed, h.rules, ruleWorkers, func() []types.NamespacedName { return keysOf(h.cache.AllRuleSets()) })
	run("release", &releases.Feed, releases, releaseWorkers, func() []types.NamespacedName { return keysOf(h.cache.Releases()) })
	if err := h.startWebhooks(reconcilers, releases); err != nil {
		return err
	}
	h.life.start(called("reseal", h.resealLayers))
	if h.collector != nil {
		h.life.start(called("store", h.collector.Run))
	}
	if err := h.makeObserver(releases); err != nil {
		return err
	}
	h.life.start(called("local", h.engines.Run))
	h.life.start("gateway", h.gateway.Run)
	h.life.start("trim", trim.New(trim.Options{Registerer: h.registry}).Run)
	return h.life.wait(ctx, "the gateway", h.gateway.Ready())
}

func keysOf[T metav1.Object](list []T) []types.NamespacedName {
	out := make([]types.NamespacedName, 0, len(list))
	for _, object := range list {
		out = append(out, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()})
	}
	return out
}
