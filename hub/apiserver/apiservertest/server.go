// SPDX-License-Identifier: Apache-2.0

// Package apiservertest runs the hub's API server, alone and with an etcd of its
// own, inside a test. The rooms that read and write our objects test against it;
// it is no part of the flow.
package apiservertest

import (
	"context"
	"net"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/hub/apiserver"
	"kumodo.io/convoy/hub/etcd"
	"kumodo.io/convoy/hub/keyring"
)

// startTimeout bounds the wait for etcd and for the server.
const startTimeout = 60 * time.Second

// Server is a running one.
type Server struct {
	*apiserver.Server
	Keyring *keyring.Keyring
	// Dir is the data directory.
	Dir string
	// Etcd is the embedded one.
	Etcd *etcd.Server
}

// Option changes the configuration before the start.
type Option func(*apiserver.Config)

// Start runs a server until the test ends.
func Start(tb testing.TB, options ...Option) *Server {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	dir := tb.TempDir()

	store, err := etcd.New(etcd.Options{Dir: dir + "/etcd"})
	if err != nil {
		tb.Fatalf("make etcd: %v", err)
	}
	run(tb, "etcd", store.Run, store.Ready())
	keys, err := keyring.Load(ctx, keyring.NewFileVault(dir+"/keys"), clock.RealClock{})
	if err != nil {
		tb.Fatalf("make keys: %v", err)
	}

	o := apiserver.NewOptions()
	o.Standalone = true
	o.Etcd.StorageConfig.Transport.ServerList = []string{store.Endpoint()}
	o.SecureServing.Listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("listen: %v", err)
	}
	config := apiserver.Config{
		Options: o,
		Serving: keys.ServingCA,
		HubCA:   keys.HubCA.PEM,
		Join:    apiserver.JoinInfo{GatewayURL: "wss://127.0.0.1:8443", HubID: keys.HubID, HubCA: string(keys.HubCA.PEM), CAPin: keys.HubCA.Pin()},
	}
	for _, option := range options {
		option(&config)
	}
	if errs := o.Validate(); len(errs) > 0 {
		tb.Fatalf("options: %v", errs)
	}
	server, err := apiserver.New(ctx, config)
	if err != nil {
		tb.Fatalf("make API server: %v", err)
	}
	run(tb, "API server", server.Run, server.Ready())
	return &Server{Server: server, Keyring: keys, Dir: dir, Etcd: store}
}

// run starts a component, waits until it is ready, and ends it with the test:
// what was started later ends earlier.
func run(tb testing.TB, name string, component func(context.Context) error, ready <-chan struct{}) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	done := make(chan error, 1)
	go func() { done <- component(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("%s ended: %v", name, err)
		}
	})
	select {
	case <-ready:
	case err := <-done:
		done <- nil
		tb.Fatalf("%s ended before it was ready: %v", name, err)
	case <-time.After(startTimeout):
		tb.Fatalf("%s was not ready in time", name)
	}
}

// Client is the configuration of a client of the given groups: by default an
// administrator.
func (s *Server) Client(tb testing.TB, groups ...string) *rest.Config {
	tb.Helper()
	if len(groups) == 0 {
		groups = []string{apiserver.GroupAdmin}
	}
	raw, err := s.Kubeconfig(s.Keyring.HubCA, s.Keyring.ServingCA.PEM, "tester", groups...)
	if err != nil {
		tb.Fatalf("make kubeconfig: %v", err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		tb.Fatalf("read kubeconfig: %v", err)
	}
	config.QPS = -1
	// The end of an HTTP/2 connection takes the server a second.
	config.NextProtos = []string{"http/1.1"}
	return config
}
