// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strconv"
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
	releases   prometheus.Gauge
	objects    prometheus.Gauge
	watches    prometheus.Gauge
	unknown    prometheus.Gauge
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
		releases: prometheus.NewGauge(prometheus.GaugeOpts{Name: "convoy_engine_releases", Help: "Releases kept."}),
		objects:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "convoy_engine_objects", Help: "Objects watched."}),
		watches:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "convoy_engine_watches", Help: "Resources watched."}),
		unknown: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "convoy_engine_releases_unknown_to_hub", Help: "Releases kept here that the hub's signed head does not count.",
		}),
	}
	if registry != nil {
		registry.MustRegister(m.calls, m.callTime, m.operations, m.heals, m.healTime, m.reports, m.events,
			m.relists, m.refusals, m.releases, m.objects, m.watches, m.unknown)
	}
	return m
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
