// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	refusals  *prometheus.CounterVec
	joins     *prometheus.CounterVec
	handshake prometheus.Histogram
	blobBytes prometheus.Counter
	reports   *prometheus.CounterVec
	orders    prometheus.Counter
	held      *prometheus.CounterVec
	displaced prometheus.Counter
	dead      *prometheus.CounterVec
	clones    prometheus.Counter
	flapping  prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, g *Gateway) *metrics {
	m := &metrics{
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_gateway_refusals_total", Help: "Connections and requests refused, by cause.",
		}, []string{"cause"}),
		joins: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_gateway_certificates_total", Help: "Answers to joins, recoveries and renewals, by kind and result.",
		}, []string{"kind", "result"}),
		handshake: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "convoy_gateway_handshake_seconds", Help: "Time of the TLS handshake inside the websocket.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		blobBytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "convoy_gateway_blob_sent_bytes_total", Help: "Bytes of renders read for agents, unpacked.",
		}),
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_gateway_reports_total", Help: "Reports received, by result.",
		}, []string{"result"}),
		orders: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "convoy_gateway_orders_sent_total", Help: "Orders sent to agents.",
		}),
		held: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_gateway_held_orders_total", Help: "Orders that agents gave back, by result.",
		}, []string{"result"}),
		displaced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "convoy_gateway_sessions_displaced_total", Help: "Sessions ended by a newer one of the same Cluster.",
		}),
		dead: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_gateway_sessions_ended_total", Help: "Sessions that the gateway ended, by cause.",
		}, []string{"cause"}),
	}
	m.clones = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "convoy_gateway_clones_total", Help: "Identities that two agents were found to use.",
	})
	m.flapping = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "convoy_gateway_flapping_total", Help: "Times that sessions of one Cluster displaced each other too often.",
	})
	reg.MustRegister(m.clones, m.flapping, m.refusals, m.joins, m.handshake, m.blobBytes, m.reports, m.orders, m.held, m.displaced, m.dead,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "convoy_gateway_sessions", Help: "Sessions that are live.",
		}, func() float64 { return float64(g.sessions.Len()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "convoy_gateway_handshakes", Help: "Connections that are not authenticated yet.",
		}, func() float64 { return float64(g.admission.handshakes()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "convoy_gateway_turned_away_total", Help: "Connections closed before TLS, since there were too many.",
		}, func() float64 { return float64(g.admission.turnedAway()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "convoy_gateway_stream_unread_bytes", Help: "What streams hold unread, against a budget.",
		}, func() float64 { return float64(g.budget.Used()) }),
	)
	return m
}

func (m *metrics) refused(cause string) { m.refusals.WithLabelValues(cause).Inc() }
