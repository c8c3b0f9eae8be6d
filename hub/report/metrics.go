// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/prometheus/client_golang/prometheus"

// metrics of this room. No object names: a fleet has too many.
type metrics struct {
	writes       *prometheus.CounterVec
	writeSeconds prometheus.Histogram
	reports      *prometheus.CounterVec
	swept        prometheus.Counter
	adopted      prometheus.Counter
	held         *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_report_writes_total", Help: "Status and inventory writes by kind and result (written, unchanged, gone, failed).",
		}, []string{"kind", "result"}),
		writeSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "convoy_report_write_seconds", Help: "Time of one Release status write.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}),
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_report_reports_total", Help: "Reports of agents by what became of them (held, older, gone, refused).",
		}, []string{"result"}),
		swept: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "convoy_report_swept_total", Help: "Releases whose state turned Unknown since nothing is heard of their cluster.",
		}),
		adopted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "convoy_report_adopted_orders_total", Help: "Orders that this hub had lost and that agents gave back.",
		}),
	}
	m.held = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "convoy_report_held_deletions_total", Help: "Deletions that were refused until they are confirmed, by kind and reason (DeletionBudget, GarbageCollector).",
	}, []string{"kind", "reason"})
	if registerer != nil {
		registerer.MustRegister(m.writes, m.writeSeconds, m.reports, m.swept, m.adopted, m.held)
	}
	return m
}
