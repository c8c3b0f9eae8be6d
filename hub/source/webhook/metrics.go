// SPDX-License-Identifier: Apache-2.0

package webhook

import "github.com/prometheus/client_golang/prometheus"

// Results of calls, for the metric.
const (
	resultTaken   = "taken"
	resultRefused = "refused"
	resultLimited = "limited"
	resultLarge   = "large"
)

type metrics struct {
	calls *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{calls: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "convoy_webhook_calls_total", Help: "Calls of sources that tell of changes, by result.",
	}, []string{"result"})}
	if registerer == nil {
		return m, nil
	}
	return m, registerer.Register(m.calls)
}
