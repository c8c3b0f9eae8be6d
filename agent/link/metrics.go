// SPDX-License-Identifier: Apache-2.0

package link

import (
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	sessions  prometheus.Counter
	failures  *prometheus.CounterVec
	orders    *prometheus.CounterVec
	heads     *prometheus.CounterVec
	blobs     *prometheus.CounterVec
	blobBytes prometheus.Counter
	reports   *prometheus.CounterVec
	renewals  *prometheus.CounterVec
	held      *prometheus.CounterVec
	layers    *prometheus.CounterVec
	refused   *prometheus.GaugeVec
	foreign   prometheus.Gauge
	headEnd   prometheus.Gauge
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
		held: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_link_held_orders_total", Help: "Signed orders that the hub asked to have back, by result.",
		}, []string{"result"}),
		layers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_link_layers_given_total", Help: "Layers that the hub asked to have back, by result.",
		}, []string{"result"}),
		refused: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "convoy_link_refused", Help: "1 while the hub's last word to this agent was a refusal, by its reason.",
		}, []string{"reason"}),
		foreign: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "convoy_link_foreign_token", Help: "1 while there is a join token for another Cluster than the one joined as.",
		}),
		headEnd: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "convoy_link_head_expiry_timestamp_seconds", Help: "End of the newest signed list of orders that was believed, 0 before the first. In the past, with a session: orders may be held back.",
		}),
	}
	reg.MustRegister(m.sessions, m.failures, m.orders, m.heads, m.blobs, m.blobBytes, m.reports, m.renewals, m.held, m.layers, m.refused, m.foreign, m.headEnd,
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
			Name: "convoy_link_clock_skew_seconds", Help: "How far the clock here is ahead of the hub's, as far as that was heard; 0 before.",
		}, func() float64 { return l.skew().Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "convoy_link_reports_pending", Help: "Reports that the hub has not acknowledged.",
		}, func() float64 { return float64(l.reports.len()) }),
	)
	return m
}

// setRefused shows the reason of the hub's last refusal, "" for none. Only one is
// shown, and only if it reads like a reason, whatever a hub may send.
func (m *metrics) setRefused(reason string) {
	m.refused.Reset()
	if reason == "" {
		return
	}
	if !reasonForm.MatchString(reason) {
		reason = "Other"
	}
	m.refused.WithLabelValues(reason).Set(1)
}

var reasonForm = regexp.MustCompile(`^[A-Z][A-Za-z]{1,39}$`)
