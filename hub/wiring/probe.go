// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/errgroup"
	"k8s.io/component-base/metrics/legacyregistry"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
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

// ofControllers gathers what controller-runtime counts, without what it says of the
// process: the API server library says that too.
type ofControllers struct{ prometheus.Gatherer }

// Gather implements prometheus.Gatherer.
func (c ofControllers) Gather() ([]*dto.MetricFamily, error) {
	all, err := c.Gatherer.Gather()
	all = slices.DeleteFunc(all, func(family *dto.MetricFamily) bool {
		return strings.HasPrefix(family.GetName(), "go_") || strings.HasPrefix(family.GetName(), "process_")
	})
	return all, err //nolint:wrapcheck // passed on whole
}

// gathered are our own metrics, those of the API server library and those of the
// controllers.
func gathered(registry *prometheus.Registry) prometheus.Gatherer {
	return prometheus.Gatherers{registry, legacyregistry.DefaultGatherer, ofControllers{ctrlmetrics.Registry}}
}

// serveProbes serves metrics and probes, plain, until ctx ends.
func serveProbes(ctx context.Context, address string, registry *prometheus.Registry, probes http.Handler) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(gathered(registry), promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
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
