// SPDX-License-Identifier: Apache-2.0

package release

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	renders *prometheus.CounterVec
	deleted *prometheus.CounterVec
	ordered prometheus.Counter
	seconds prometheus.Histogram
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		renders: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_controller_renders_total", Help: "Renders asked for, by result (made, failed).",
		}, []string{"result"}),
		deleted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_controller_deleted_releases_total", Help: "Deleted Releases by the verb of their last order (remove, release, none).",
		}, []string{"verb"}),
		ordered: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "convoy_controller_ordered_total", Help: "New apply orders recorded.",
		}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "convoy_controller_release_seconds", Help: "Time of one reconcile of a Release, from the look at its source to the written status.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 3, 12),
		}),
	}
	if registerer != nil {
		registerer.MustRegister(m.renders, m.deleted, m.ordered, m.seconds)
	}
	return m
}
