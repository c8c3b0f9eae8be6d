// SPDX-License-Identifier: Apache-2.0

package deliver

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	signed     *prometheus.CounterVec
	heads      prometheus.Counter
	done       prometheus.Counter
	expired    prometheus.Counter
	reissued   prometheus.Counter
	unverified prometheus.Counter
	behind     prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer, d *Deliverer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		signed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_deliver_signed_orders_total", Help: "Orders signed, by verb; a write that is tried again signs again.",
		}, []string{"verb"}),
		heads:      counter("convoy_deliver_signed_heads_total", "Heads signed."),
		done:       counter("convoy_deliver_done_orders_total", "Remove and release orders that agents carried out."),
		expired:    counter("convoy_deliver_expired_orders_total", "Remove and release orders given up since their cluster was away too long."),
		reissued:   counter("convoy_deliver_reissued_orders_total", "Remove orders issued anew since an agent refused them: the inventory had moved on, or they were too old."),
		unverified: counter("convoy_deliver_unverified_orders_total", "Orders found in a status that this hub did not sign."),
		behind:     counter("convoy_deliver_newer_orders_total", "Orders that agents hold and that are newer than the hub's, or unknown to it, when compared."),
	}
	if registerer == nil {
		return m
	}
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			d.mu.Lock()
			defer d.mu.Unlock()
			return float64(value())
		})
	}
	registerer.MustRegister(m.signed, m.heads, m.done, m.expired, m.reissued, m.unverified, m.behind,
		gauge("convoy_deliver_orders", "Apply orders of living Releases.", func() int { return len(d.ordered) }),
		gauge("convoy_deliver_waiting_orders", "Last orders of deleted Releases that wait for an agent.", func() int { return len(d.buried) }))
	return m
}
