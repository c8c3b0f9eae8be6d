// SPDX-License-Identifier: Apache-2.0

package cache

import "github.com/prometheus/client_golang/prometheus"

// register adds the gauges of a cache, if there is somebody to ask for them.
func register(registerer prometheus.Registerer, c *Cache) {
	if registerer == nil {
		return
	}
	gauge := func(kind string, count func() int) {
		registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "convoy_cache_objects", Help: "Objects in the hub's cache, by kind.", ConstLabels: prometheus.Labels{"kind": kind},
		}, func() float64 { return float64(count()) }))
	}
	gauge("Cluster", c.clusters.count)
	gauge("Release", c.releases.count)
	if c.rules != nil {
		gauge(c.rules.name, c.rules.count)
		gauge(c.global.name, c.global.count)
	}
	for name, store := range c.sources {
		gauge(name, store.count)
	}
}
