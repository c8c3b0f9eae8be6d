// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	renders *prometheus.CounterVec
	seconds prometheus.Histogram
	objects prometheus.Counter
	starts  prometheus.Counter
	shared  prometheus.Counter
	spared  prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		renders: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "convoy_render_renders_total", Help: "Renders made, by result: OK, Incomplete (a round that told what it lacks), or the reason of the Rendered condition."}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "convoy_render_render_duration_seconds", Help: "Time of a render, from a free worker to both layers in the store.", Buckets: []float64{.01, .03, .1, .3, 1, 3, 10, 30}}),
		objects: prometheus.NewCounter(prometheus.CounterOpts{Name: "convoy_render_objects_total", Help: "Objects rendered."}),
		starts:  prometheus.NewCounter(prometheus.CounterOpts{Name: "convoy_render_worker_starts_total", Help: "Render workers started."}),
		shared:  prometheus.NewCounter(prometheus.CounterOpts{Name: "convoy_render_shared_total", Help: "Renders that were not made, since one of the same inputs was known."}),
		spared:  prometheus.NewCounter(prometheus.CounterOpts{Name: "convoy_render_spared_total", Help: "Renders that were not made, since one of the same inputs had failed for them."}),
	}
	for _, collector := range []prometheus.Collector{m.renders, m.seconds, m.objects, m.starts, m.shared, m.spared} {
		if err := registerer.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) rendered(got answer, err error, took time.Duration) {
	label := "OK"
	if !got.needs.none() {
		label = "Incomplete"
	}
	if err != nil {
		label = "Other"
		var own *Error
		if errors.As(err, &own) {
			label = own.reason
		}
	}
	m.renders.WithLabelValues(label).Inc()
	m.seconds.Observe(took.Seconds())
	m.objects.Add(float64(got.result.Count))
}
