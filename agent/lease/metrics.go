// SPDX-License-Identifier: Apache-2.0

package lease

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	lost     prometheus.Counter
	failures prometheus.Counter
}

func newMetrics(registry prometheus.Registerer, e *Elector) *metrics {
	m := &metrics{
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "convoy_lease_lost_total", Help: "Times that the Lease was lost: not renewed in time, or taken by another agent.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "convoy_lease_renewals_failed_total", Help: "Renewals of the Lease that failed, and were tried again.",
		}),
	}
	held := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "convoy_lease_held", Help: "1 while this agent has the Lease, that is dials and applies.",
	}, func() float64 {
		if e.Held() {
			return 1
		}
		return 0
	})
	if registry != nil {
		registry.MustRegister(m.lost, m.failures, held)
	}
	return m
}
