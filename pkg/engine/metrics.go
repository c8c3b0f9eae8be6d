// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kumodo.io/convoy/pkg/tunnel"
)

// metrics of the engine. No label holds the name of a Release or an object.
type metrics struct {
	calls      *prometheus.CounterVec
	callTime   *prometheus.HistogramVec
	operations *prometheus.HistogramVec
	heals      *prometheus.CounterVec
	healTime   prometheus.Histogram
	reports    prometheus.Counter
	events     prometheus.Counter
	relists    *prometheus.CounterVec
	refusals   *prometheus.CounterVec
	releases   *share
	objects    *share
	watches    *share
	unknown    *share
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_engine_api_requests_total", Help: "Requests to the cluster's API server by verb and status code; code 0 is no answer.",
		}, []string{"verb", "code"}),
		callTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "convoy_engine_api_request_duration_seconds", Help: "Time until the API server's answer began, by verb.",
			Buckets: prometheus.ExponentialBuckets(0.002, 3, 8),
		}, []string{"verb"}),
		operations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "convoy_engine_operation_duration_seconds", Help: "Time from the start of an operation to its end, by verb and outcome.",
			Buckets: prometheus.ExponentialBuckets(0.05, 3, 9),
		}, []string{"verb", "outcome"}),
		heals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_engine_repairs_total", Help: "Repairs of objects that had drifted, by outcome.",
		}, []string{"outcome"}),
		healTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "convoy_engine_repair_duration_seconds", Help: "Time from seeing that an object has drifted to its repair.",
			Buckets: prometheus.ExponentialBuckets(0.005, 3, 8),
		}),
		reports: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "convoy_engine_reports_total", Help: "Reports made, before they are folded.",
		}),
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "convoy_engine_watch_events_total", Help: "Watch events received.",
		}),
		relists: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_engine_watch_starts_total", Help: "Watches begun, by whether objects had to be listed first.",
		}, []string{"how"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_engine_orders_refused_total", Help: "Orders refused, by reason.",
		}, []string{"reason"}),
		releases: &share{sum: prometheus.NewGauge(prometheus.GaugeOpts{Name: "convoy_engine_releases", Help: "Releases kept."})},
		objects:  &share{sum: prometheus.NewGauge(prometheus.GaugeOpts{Name: "convoy_engine_objects", Help: "Objects watched."})},
		watches:  &share{sum: prometheus.NewGauge(prometheus.GaugeOpts{Name: "convoy_engine_watches", Help: "Resources watched."})},
		unknown: &share{sum: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "convoy_engine_releases_unknown_to_hub", Help: "Releases kept here that the hub's signed head does not count.",
		})},
	}
	if registry == nil {
		return m
	}
	// A hub runs many engines in one process: they count together.
	one(registry, &m.calls)
	one(registry, &m.callTime)
	one(registry, &m.operations)
	one(registry, &m.heals)
	one(registry, &m.healTime)
	one(registry, &m.reports)
	one(registry, &m.events)
	one(registry, &m.relists)
	one(registry, &m.refusals)
	for _, s := range []*share{m.releases, m.objects, m.watches, m.unknown} {
		one(registry, &s.sum)
	}
	return m
}

// one registers a collector, or takes the one that an engine before registered.
func one[T prometheus.Collector](registry prometheus.Registerer, collector *T) {
	var there prometheus.AlreadyRegisteredError
	if err := registry.Register(*collector); errors.As(err, &there) {
		if same, ok := there.ExistingCollector.(T); ok {
			*collector = same
		}
	} // Any other error is a fault of the names above: the tests register them.
}

// share is one engine's part of a gauge that is the sum over all of a process.
type share struct {
	sum prometheus.Gauge

	mu   sync.Mutex
	mine float64
}

// Set makes the part v.
func (s *share) Set(v float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum.Add(v - s.mine)
	s.mine = v
}

// Inc adds one to the part.
func (s *share) Inc() { s.add(1) }

// Dec takes one from the part.
func (s *share) Dec() { s.add(-1) }

func (s *share) add(v float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum.Add(v)
	s.mine += v
}

// Discard takes what a Runner counted of what it holds out of the process's sums. It
// is called when its Run has returned and others go on.
func (rn *Runner) Discard() {
	for _, s := range []*share{rn.meter.releases, rn.meter.objects, rn.meter.watches, rn.meter.unknown} {
		s.Set(0)
	}
}

func (m *metrics) call(verb string, code int, d time.Duration) {
	m.calls.WithLabelValues(verb, strconv.Itoa(code)).Inc()
	m.callTime.WithLabelValues(verb).Observe(d.Seconds())
}

func (m *metrics) operation(verb tunnel.Verb, ok bool, d time.Duration) {
	outcome := "succeeded"
	if !ok {
		outcome = "failed"
	}
	m.operations.WithLabelValues(string(verb), outcome).Observe(d.Seconds())
}

func (m *metrics) heal(outcome string)    { m.heals.WithLabelValues(outcome).Inc() }
func (m *metrics) healed(d time.Duration) { m.healTime.Observe(d.Seconds()) }
func (m *metrics) report()                { m.reports.Inc() }
