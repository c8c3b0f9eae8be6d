// SPDX-License-Identifier: Apache-2.0

package trim

import "github.com/prometheus/client_golang/prometheus"

type counters struct {
	trims prometheus.Counter
	freed prometheus.Counter
}

func newCounters(registerer prometheus.Registerer) *counters {
	m := &counters{
		trims: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "convoy_trim_trims_total", Help: "How often memory was collected and given back because the process had grown calm.",
		}),
		freed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "convoy_trim_expected_bytes_total", Help: "Bytes that these were expected to give back.",
		}),
	}
	if registerer != nil {
		registerer.MustRegister(m.trims, m.freed)
	}
	return m
}
