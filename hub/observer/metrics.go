// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	answers  *prometheus.CounterVec
	previews *prometheus.CounterVec
	seconds  prometheus.Histogram
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		answers:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "convoy_observer_answers_total", Help: "Questions other than previews (health, diff, history), by the HTTP code of the answer."}, []string{"question", "code"}),
		previews: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "convoy_observer_previews_total", Help: "Previews asked for, by the HTTP code of the answer."}, []string{"code"}),
		seconds:  prometheus.NewHistogram(prometheus.HistogramOpts{Name: "convoy_observer_preview_duration_seconds", Help: "Time of a preview, waiting included.", Buckets: []float64{.03, .1, .3, 1, 3, 10, 30}}),
	}
	for _, collector := range []prometheus.Collector{m.answers, m.previews, m.seconds} {
		if err := registerer.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) answered(question string, code int, took time.Duration) {
	if question != questionPreview {
		m.answers.WithLabelValues(question, strconv.Itoa(code)).Inc()
		return
	}
	m.previews.WithLabelValues(strconv.Itoa(code)).Inc()
	m.seconds.Observe(took.Seconds())
}
