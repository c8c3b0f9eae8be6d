// SPDX-License-Identifier: Apache-2.0

package healthrule

import "github.com/prometheus/client_golang/prometheus"

// metrics of this room. No names of sets or Releases: a hub has too many.
type metrics struct {
	compiled  prometheus.Counter
	documents *prometheus.CounterVec
	turns     *prometheus.CounterVec
	waiting   prometheus.GaugeFunc
}

func newMetrics(registerer prometheus.Registerer, waiting func() float64) *metrics {
	m := &metrics{
		compiled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "convoy_healthrule_compiled_total", Help: "Sets of health rules compiled: one for each generation of a set.",
		}),
		documents: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_healthrule_documents_total", Help: "Documents of health rules by what was done (made, stored, failed): Releases that use the same sets share one.",
		}, []string{"result"}),
		turns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_healthrule_turns_total", Help: "Releases that are to get other rules than those that are ordered, by whether they got them at once (now, later).",
		}, []string{"result"}),
		waiting: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "convoy_healthrule_waiting_releases", Help: "Releases whose turn to get other rules is not over: their order does not name them yet.",
		}, waiting),
	}
	if registerer != nil {
		registerer.MustRegister(m.compiled, m.documents, m.turns, m.waiting)
	}
	return m
}
