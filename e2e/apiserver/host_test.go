// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/hub/apiserver"
	"kumodo.io/convoy/hub/etcd"
	"kumodo.io/convoy/hub/keyring"
	"kumodo.io/convoy/hub/options"
)

const (
	hubAccount = "system:serviceaccount:convoy-system:convoy-hub"
	// timeout of the whole suite.
	timeout = 8 * time.Minute
)

// host is a control plane that serves convoy's kinds.
type host struct {
	*harness.Plane
	ctx    context.Context
	server *apiserver.Server
	// dir is for manifests.
	dir string
}

// startHost installs manifests/hub, without running its Deployment, and serves
// the API from this process under the rights of the hub's ServiceAccount.
func startHost(t *testing.T) *host {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), timeout)
	t.Cleanup(cancel)
	p := harness.T(t, harness.Options{Name: "host", UnsafeNoFsync: true})
	root, err := harness.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"00-namespace.yaml", "10-rbac.yaml", "20-secrets.yaml", "30-services.yaml", "60-user-roles.yaml"} {
		if _, err := p.Kubectl(ctx, "apply", "-f", filepath.Join(root, "manifests", "hub", file)); err != nil {
			t.Fatal(err)
		}
	}
	port, err := harness.FreePort(ctx)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := p.UserKubeconfig(hubAccount, "system:serviceaccounts", "system:serviceaccounts:convoy-system", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	h := &host{Plane: p, ctx: ctx, dir: t.TempDir(), server: serve(ctx, t, "--kubeconfig="+kubeconfig, "--secure-port="+strconv.Itoa(port), "--bind-address=127.0.0.1")}

	// As in an installation where the hub was there first.
	if _, err := p.Kubectl(ctx, "apply", "-f", filepath.Join(root, "manifests", "hub", "50-apiservices.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := p.RouteService(ctx, "convoy-system", "convoy-apiserver", port); err != nil {
		t.Fatal(err)
	}
	for gv, resources := range map[string][]string{
		"core":   {"clusters", "clusters/join", "releases", "releases/sync", "releaseinventories"},
		"source": {"gitrepositories"},
	} {
		version := corev1alpha1.SchemeGroupVersion
		if gv == "source" {
			version = sourcev1alpha1.SchemeGroupVersion
		}
		if err := harness.WaitServed(ctx, p.Client().Discovery(), version, resources...); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// serve runs etcd, keys, API server and caBundle as hub/main.go does, and removes
// finalizers as its controllers would.
func serve(ctx context.Context, t *testing.T, args ...string) *apiserver.Server {
	t.Helper()
	var help bytes.Buffer
	o, err := options.Parse(append(args, "--embedded-etcd", "--data-dir="+t.TempDir()), &help)
	if err != nil {
		t.Fatalf("%v\n%s", err, help.String())
	}
	completed := o.Complete()
	if errs := completed.Validate(); len(errs) > 0 {
		t.Fatal(errors.Join(errs...))
	}
	config, err := completed.Config()
	if err != nil {
		t.Fatal(err)
	}
	store, err := etcd.New(etcd.Options{Dir: config.EtcdDir})
	if err != nil {
		t.Fatal(err)
	}
	run(ctx, t, "etcd", store.Run)
	wait(ctx, t, "etcd", store.Ready())
	config.API.Etcd.StorageConfig.Transport.ServerList = []string{store.Endpoint()}

	secrets, err := secretsOf(config)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := keyring.Load(ctx, keyring.NewSecretVault(secrets), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	server, err := apiserver.New(ctx, apiserver.Config{
		Options: config.API, Host: config.Host, Serving: keys.ServingCA, HubCA: keys.HubCA.PEM,
		Join: apiserver.JoinInfo{GatewayURL: config.Gateway.URL, HubID: keys.HubID, HubCA: string(keys.HubCA.PEM), CAPin: keys.HubCA.Pin()},
	})
	if err != nil {
		t.Fatal(err)
	}
	run(ctx, t, "API server", server.Run)
	wait(ctx, t, "API server", server.Ready())

	dyn, err := dynamic.NewForConfig(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	run(ctx, t, "caBundle", func(ctx context.Context) error {
		return keyring.KeepCABundles(ctx, dyn.Resource(keyring.APIServiceResource()), apiserver.APIServiceNames(), keys.ServingCA.PEM, clock.RealClock{})
	})
	run(ctx, t, "finalizers", func(ctx context.Context) error { return letGo(ctx, server.Storage()) })
	return server
}

// letGo takes the finalizer off every deleted Release and Cluster.
func letGo(ctx context.Context, s apiserver.Storage) error {
	releases := cache.NewReflectorWithOptions(s.Releases.ListWatch(), &corev1alpha1.Release{}, follow(func(o any) {
		if r, ok := o.(*corev1alpha1.Release); ok && r.DeletionTimestamp != nil {
			// It is seen again if this fails.
			_ = s.Releases.RemoveFinalizer(ctx, types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, r.UID, corev1alpha1.FinalizerRelease)
		}
	}), cache.ReflectorOptions{})
	clusters := cache.NewReflectorWithOptions(s.Clusters.ListWatch(), &corev1alpha1.Cluster{}, follow(func(o any) {
		if c, ok := o.(*corev1alpha1.Cluster); ok && c.DeletionTimestamp != nil {
			_ = s.Clusters.RemoveFinalizer(ctx, types.NamespacedName{Namespace: c.Namespace, Name: c.Name}, c.UID, corev1alpha1.FinalizerCluster)
		}
	}), cache.ReflectorOptions{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		clusters.RunWithContext(ctx)
	}()
	releases.RunWithContext(ctx)
	<-done
	return nil
}

// follow is a store that calls f for every object that comes or changes.
func follow(f func(any)) cache.Store {
	return follower{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), f: f}
}

type follower struct {
	cache.Store
	f func(any)
}

func (s follower) Add(o any) error    { s.f(o); return nil }
func (s follower) Update(o any) error { s.f(o); return nil }
func (s follower) Delete(any) error   { return nil }
func (s follower) Replace(all []any, _ string) error {
	for _, o := range all {
		s.f(o)
	}
	return nil
}

// run runs a part until the test ends; parts end in reverse order.
func run(ctx context.Context, t *testing.T, name string, part func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- part(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("%s ended: %v", name, err)
		}
	})
}

func wait(ctx context.Context, t *testing.T, name string, ready <-chan struct{}) {
	t.Helper()
	select {
	case <-ready:
	case <-ctx.Done():
		t.Fatalf("%s is not ready: %v", name, ctx.Err())
	}
}

// file writes a manifest and gives its path. It is not in the subtest's own
// folder, whose name may hold a comma, which would be two paths to kubectl.
func (h *host) file(t *testing.T, content string) string {
	t.Helper()
	f, err := os.CreateTemp(h.dir, "manifest-*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, werr := f.WriteString(content)
	if err := errors.Join(werr, f.Close()); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}
