// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"k8s.io/component-base/metrics/legacyregistry"
)

const (
	// headerTimeout of a request to the port for metrics and probes.
	headerTimeout = 5 * time.Second
	// drainTimeout of those under way at the end.
	drainTimeout = 2 * time.Second
	// maxScrapes at once.
	maxScrapes = 4
)

var (
	errStopping = errors.New("the hub is stopping")
	errStarting = errors.New("the hub is starting")
)

// readiness is what the hub says of itself, beside what the API server says.
type readiness struct {
	stopping atomic.Bool
	// serving is set when the gateway takes sessions: all beneath it is there then.
	serving atomic.Bool
}

// Name implements healthz.HealthChecker.
func (*readiness) Name() string { return "convoy" }

// Check implements healthz.HealthChecker.
func (r *readiness) Check(*http.Request) error {
	switch {
	case r.stopping.Load():
		return errStopping
	case !r.serving.Load():
		return errStarting
	}
	return nil
}

// serveProbes serves metrics and probes, plain, until ctx ends. Our own metrics
// and those of the library are gathered together.
func serveProbes(ctx context.Context, address string, registry *prometheus.Registry, probes http.Handler) error {
	mux := http.NewServeMux()
	gatherers := prometheus.Gatherers{registry, legacyregistry.DefaultGatherer}
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		mux.Handle("GET "+path, probes)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for probes: %w", err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve probes: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		return server.Shutdown(draining)
	})
	return group.Wait()
}
