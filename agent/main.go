// SPDX-License-Identifier: Apache-2.0

// Command convoy-agent runs in a managed cluster. It dials out to the hub, takes the
// orders of its Cluster, applies their renders, keeps them true, and reports: the
// steps deliver (its far end), apply, observe and report of the flow source ->
// render -> store -> deliver -> apply -> observe -> report. It is link, state and
// engine, wired here.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"kumodo.io/convoy/agent/identity"
	"kumodo.io/convoy/agent/lease"
	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/agent/options"
	"kumodo.io/convoy/pkg/engine"
	"kumodo.io/convoy/pkg/state"
	"kumodo.io/convoy/pkg/trim"
	"kumodo.io/convoy/pkg/tunnel"
	"kumodo.io/convoy/pkg/version"
)

const (
	// memoryLimit is the soft limit for the Go heap where GOMEMLIMIT sets none, and
	// gcPercent how much garbage may pile up where GOGC says nothing: the agent shares
	// small machines with what it deploys.
	memoryLimit = 48 << 20
	gcPercent   = 40
	// trimAfter bytes that were allocated are worth a collection once the agent has grown
	// calm; at rest that many are in a quarter of an hour or more.
	trimAfter = 32 << 20
	// headerTimeout of requests for metrics and probes, drainTimeout for their end.
	headerTimeout = 5 * time.Second
	drainTimeout  = 2 * time.Second
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	opts := options.New()
	flags := pflag.NewFlagSet("convoy-agent", pflag.ContinueOnError)
	opts.AddFlags(flags)
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if opts.Version {
		fmt.Println("convoy-agent", version.Version)
		return 0
	}
	config, err := opts.Config()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	handler := slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(-config.Verbosity)})
	log := logr.FromSlogHandler(handler)
	klog.SetLogger(log.WithName("client"))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return end(log, serve(logr.NewContext(ctx, log), config, log))
}

// end says why the agent ends, and gives the code to end with: 0 when it was told
// to, 1 when it is to be started anew, which is no error where it ended for that.
func end(log logr.Logger, err error) int {
	var why string
	switch {
	case err == nil:
		log.Info("the agent ends")
		return 0
	case errors.Is(err, errIdentityChanged):
		why = "it joined as another Cluster"
	case errors.Is(err, lease.ErrLost):
		why = "it has lost the Lease, and may neither dial nor apply"
	case errors.Is(err, link.ErrUnreached):
		why = "nothing was reached for too long"
	default:
		log.Error(err, "the agent ends")
		return 1
	}
	log.Info("the agent ends, to be started anew", "why", why, "cause", err.Error())
	return 1
}

// serve runs the agent until ctx ends. Probes are served from the start, all else
// while it has the Lease.
func serve(ctx context.Context, config *options.Config, log logr.Logger) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	name, gone := holder(config.Pod)
	elector, err := lease.New(lease.Options{Config: config.Cluster, Namespace: config.Namespace, Holder: name, Gone: gone, Registerer: registry})
	if err != nil {
		return err //nolint:wrapcheck // says what it is
	}
	a := &agent{config: config, registry: registry, log: log}
	log.Info("the agent starts", "version", version.Version, "namespace", config.Namespace)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return serveProbes(ctx, config.MetricsAddr, registry, a.ready) })
	group.Go(func() error { return elector.Hold(ctx, a.run) })
	err = group.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// agent is what runs with the Lease.
type agent struct {
	config   *options.Config
	registry *prometheus.Registry
	log      logr.Logger
	enforcer atomic.Pointer[enforcer] // nil before it has the Lease
}

// ready says whether the agent does its work; one that waits for the Lease does not.
func (a *agent) ready() bool {
	e := a.enforcer.Load()
	return e != nil && e.ready()
}

// run dials and applies until ctx ends. It returns when all of it has ended.
func (a *agent) run(ctx context.Context) error {
	config, log := a.config, a.log
	secrets, err := state.NewSecrets(config.Cluster, config.Namespace)
	if err != nil {
		return err //nolint:wrapcheck // says what it is
	}
	tokens, err := identity.NewWatcher(config.Cluster, config.Namespace)
	if err != nil {
		return err //nolint:wrapcheck // says what it is
	}
	known := identity.New(secrets)
	group, ctx := errgroup.WithContext(ctx)
	var hub *link.Link
	e := &enforcer{store: known, group: group, ctx: ctx, log: log}
	e.make = func(o engine.Options) (*engine.Runner, error) {
		o.Config, o.State, o.Blobs = config.Cluster, secrets, hub
		o.Report, o.Logger, o.Registerer = hub.Report, log.WithName("engine"), a.registry
		o.Namespaces = config.TargetNamespaces
		return engine.New(o)
	}
	backoff := link.RedialBackoff(config.RedialWithin)
	hub, err = link.New(link.Options{
		Engine: e, Reporting: e, Holder: e, Inspector: e, Identity: e, Token: known.JoinToken, TokenChanged: tokens.Changed(),
		Hello:      func(ctx context.Context) (tunnel.Hello, error) { return e.hello(ctx, version.Version) },
		GatewayURL: config.GatewayURL, OuterCAFile: config.OuterCAFile, Built: version.Built(),
		RestartAfter: config.RestartAfter, Backoff: &backoff, Registerer: a.registry,
	})
	if err != nil {
		return err //nolint:wrapcheck // says what it is
	}
	e.hubNow = hub.HubNow
	a.enforcer.Store(e)
	group.Go(func() error { return hub.Run(ctx) })
	group.Go(func() error { return tokens.Run(ctx) })
	group.Go(func() error {
		return trim.New(trim.Options{Registerer: a.registry, Work: trimAfter, Idle: secrets.Idle}).Run(ctx)
	})
	err = group.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// serveProbes serves metrics and probes until ctx ends.
func serveProbes(ctx context.Context, address string, registry *prometheus.Registry, ready func() bool) error {
	fine := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true}))
	mux.HandleFunc("GET /healthz", fine)
	mux.HandleFunc("GET /livez", fine)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			http.Error(w, "waits for the Lease, or the state is not read yet", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for probes: %w", err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve probes: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-gctx.Done()
		drain, cancel := context.WithTimeout(context.WithoutCancel(gctx), drainTimeout)
		defer cancel()
		if err := server.Shutdown(drain); err != nil {
			return server.Close()
		}
		return nil
	})
	return group.Wait()
}
