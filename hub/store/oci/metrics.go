// SPDX-License-Identifier: Apache-2.0

package oci

import "github.com/prometheus/client_golang/prometheus"

// metrics of the backend.
type metrics struct {
	refused prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{refused: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "convoy_store_registry_refused_deletions_total", Help: "Deletions that the registry of renders refused; the bytes stay there.",
	})}
	if registerer == nil {
		return m, nil
	}
	return m, registerer.Register(m.refused)
}
