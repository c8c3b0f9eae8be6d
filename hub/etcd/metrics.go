// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	size, used, alarm prometheus.Gauge
}

func newMetrics() *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "convoy", Subsystem: "etcd", Name: name, Help: help})
	}
	return &metrics{
		size:  gauge("database_size_bytes", "Size of the embedded etcd's file."),
		used:  gauge("database_used_bytes", "Part of the embedded etcd's file that is in use."),
		alarm: gauge("no_space_alarm", "1 while the embedded etcd is out of space and refuses writes."),
	}
}

func (m *metrics) register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{m.size, m.used, m.alarm} {
		if err := r.Register(c); err != nil {
			return fmt.Errorf("register etcd metrics: %w", err)
		}
	}
	return nil
}

func (m *metrics) observe(size, used int64, alarm bool) {
	m.size.Set(float64(size))
	m.used.Set(float64(used))
	if alarm {
		m.alarm.Set(1)
	} else {
		m.alarm.Set(0)
	}
}
