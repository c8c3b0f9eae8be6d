// SPDX-License-Identifier: Apache-2.0

package source

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	resolves       *prometheus.CounterVec
	resolveSeconds prometheus.Histogram
	fetches        *prometheus.CounterVec
	fetchSeconds   prometheus.Histogram
	fetchBytes     prometheus.Counter
	cacheBytes     prometheus.Gauge
	evictions      prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	buckets := []float64{.02, .1, .3, 1, 3, 10, 30, 120}
	m := &metrics{
		resolves:       prometheus.NewCounterVec(prometheus.CounterOpts{Name: "convoy_source_resolves_total", Help: "Refs looked up, by result: Known (answered from memory), OK, or a reason."}, []string{"result"}),
		resolveSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "convoy_source_resolve_duration_seconds", Help: "Time a remote took to say what a ref leads to.", Buckets: buckets}),
		fetches:        prometheus.NewCounterVec(prometheus.CounterOpts{Name: "convoy_source_fetches_total", Help: "Snapshots wanted, by result: Known (in the cache), OK, or a reason."}, []string{"result"}),
		fetchSeconds:   prometheus.NewHistogram(prometheus.HistogramOpts{Name: "convoy_source_fetch_duration_seconds", Help: "Time to fetch and unpack one revision.", Buckets: buckets}),
		fetchBytes:     prometheus.NewCounter(prometheus.CounterOpts{Name: "convoy_source_fetched_bytes_total", Help: "Bytes of packs and archives received."}),
		cacheBytes:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "convoy_source_cache_bytes", Help: "Size of the snapshots on disk."}),
		evictions:      prometheus.NewCounter(prometheus.CounterOpts{Name: "convoy_source_cache_evictions_total", Help: "Snapshots removed from the disk to make room."}),
	}
	for _, collector := range []prometheus.Collector{m.resolves, m.resolveSeconds, m.fetches, m.fetchSeconds, m.fetchBytes, m.cacheBytes, m.evictions} {
		if err := registerer.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) resolved(err error, took time.Duration) {
	m.resolves.WithLabelValues(result(err)).Inc()
	m.resolveSeconds.Observe(took.Seconds())
}

func (m *metrics) fetched(err error, took time.Duration) {
	m.fetches.WithLabelValues(result(err)).Inc()
	m.fetchSeconds.Observe(took.Seconds())
}

// known counts answers that cost nothing.
func known(counter *prometheus.CounterVec) { counter.WithLabelValues("Known").Inc() }

// result is the label for an outcome; reasons are a fixed list.
func result(err error) string {
	if err == nil {
		return "OK"
	}
	if own, ok := explain(err).(*Error); ok { //nolint:errorlint // explain returns this very type, or one that wraps it
		return own.reason
	}
	return "Other"
}
