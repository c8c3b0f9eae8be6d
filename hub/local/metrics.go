// SPDX-License-Identifier: Apache-2.0

package local

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of the engines in this process. What an engine counts of itself is summed
// over all of them under its own names.
type metrics struct {
	probes    *prometheus.CounterVec
	probeTime prometheus.Histogram
	faults    *prometheus.CounterVec
	started   prometheus.Counter
	orders    *prometheus.CounterVec
	reports   *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer, m *Manager) *metrics {
	out := &metrics{
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_local_probes_total", Help: "Probes of clusters without an agent, by outcome.",
		}, []string{"outcome"}),
		probeTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "convoy_local_probe_duration_seconds", Help: "Time that a probe took.",
			Buckets: prometheus.ExponentialBuckets(0.005, 3, 8),
		}),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_local_faults_total", Help: "Looks at a Cluster that ended without an engine that works, by reason.",
		}, []string{"reason"}),
		started: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "convoy_local_engine_starts_total", Help: "Engines started in this process.",
		}),
		orders: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_local_orders_total", Help: "Orders handed to engines in this process, by what became of them.",
		}, []string{"result"}),
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_local_reports_total", Help: "Reports of engines in this process, by what became of them.",
		}, []string{"result"}),
	}
	if registry != nil {
		registry.MustRegister(out.probes, out.probeTime, out.faults, out.started, out.orders, out.reports,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "convoy_local_engines", Help: "Engines that run in this process."}, func() float64 {
				_, engines := m.count()
				return float64(engines)
			}),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "convoy_local_clusters", Help: "Clusters without an agent."}, func() float64 {
				cells, _ := m.count()
				return float64(cells)
			}),
		)
	}
	return out
}

func (m *metrics) probed(ok bool, took time.Duration) {
	outcome := "succeeded"
	if !ok {
		outcome = "failed"
	}
	m.probes.WithLabelValues(outcome).Inc()
	m.probeTime.Observe(took.Seconds())
}
