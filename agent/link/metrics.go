// SPDX-License-Identifier: Apache-2.0

package link

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	sessions  prometheus.Counter
	failures  *prometheus.CounterVec
	orders    *prometheus.CounterVec
	heads     *prometheus.CounterVec
	blobs     *prometheus.CounterVec
	blobBytes prometheus.Counter
	reports   *prometheus.CounterVec
	renewals  *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer, l *Link) *metrics {
	m := &metrics{
		sessions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "convoy_link_sessions_total", Help: "Sessions made with the hub.",
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_link_failures_total", Help: "Dials that failed and sessions that were lost, by cause.",
		}, []string{"cause"}),
		orders: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_link_orders_total", Help: "Orders received, by result.",
		}, []string{"result"}),
		heads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_link_heads_total", Help: "Signed heads received, by result.",
		}, []string{"result"}),
		blobs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_link_blobs_total", Help: "Layers asked for, by result.",
		}, []string{"result"}),
		blobBytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "convoy_link_blob_received_bytes_total", Help: "Bytes of layers received, unpacked.",
		}),
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_link_reports_total", Help: "Reports, by what became of them.",
		}, []string{"result"}),
		renewals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_link_renewals_total", Help: "Certificates asked for over the session, by result.",
		}, []string{"result"}),
	}
	reg.MustRegister(m.sessions, m.failures, m.orders, m.heads, m.blobs, m.blobBytes, m.reports, m.renewals,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "convoy_link_connected", Help: "1 while there is a session.",
		}, func() float64 {
			if l.Connected() {
				return 1
			}
			return 0
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "convoy_link_certificate_expiry_timestamp_seconds", Help: "End of the agent's certificate, 0 when it has none.",
		}, func() float64 {
			cert, err := l.currentIdentity().certificate()
			if err != nil {
				return 0
			}
			return float64(cert.Leaf.NotAfter.Unix())
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "convoy_link_reports_pending", Help: "Reports that the hub has not acknowledged.",
		}, func() float64 { return float64(l.reports.len()) }),
	)
	return m
}
