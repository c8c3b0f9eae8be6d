// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the render store. One value serves several stores, told apart by layer.
type Metrics struct {
	putSeconds *prometheus.HistogramVec
	putBytes   *prometheus.CounterVec
	readBytes  *prometheus.CounterVec
	failures   *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		putSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "convoy_store_put_duration_seconds", Help: "Time to store one layer of a render durably.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10},
		}, []string{"layer"}),
		putBytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_store_put_bytes_total", Help: "Bytes of renders stored.",
		}, []string{"layer"}),
		readBytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_store_read_bytes_total", Help: "Bytes of renders read.",
		}, []string{"layer"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_store_failures_total", Help: "Operations that failed, by reason: NotFound, Corrupt, Other.",
		}, []string{"layer", "reason"}),
	}
	for _, collector := range []prometheus.Collector{m.putSeconds, m.putBytes, m.readBytes, m.failures} {
		if err := registerer.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Instrument gives a store that counts; layer is "objects" or "sealed".
func (m *Metrics) Instrument(store Store, layer string) Store {
	return &instrumented{store: store, metrics: m, layer: layer}
}

type instrumented struct {
	store   Store
	metrics *Metrics
	layer   string
}

func (i *instrumented) failed(err error) {
	reason := "Other"
	switch {
	case errors.Is(err, ErrNotFound):
		reason = "NotFound"
	case errors.Is(err, ErrCorrupt):
		reason = "Corrupt"
	}
	i.metrics.failures.WithLabelValues(i.layer, reason).Inc()
}

func (i *instrumented) Put(ctx context.Context, r io.Reader) (Descriptor, error) {
	start := time.Now()
	descriptor, err := i.store.Put(ctx, r)
	if err != nil {
		i.failed(err)
		return descriptor, err
	}
	i.metrics.putSeconds.WithLabelValues(i.layer).Observe(time.Since(start).Seconds())
	i.metrics.putBytes.WithLabelValues(i.layer).Add(float64(descriptor.Size))
	return descriptor, nil
}

func (i *instrumented) Open(ctx context.Context, digest string) (io.ReadCloser, int64, error) {
	blob, size, err := i.store.Open(ctx, digest)
	if err != nil {
		i.failed(err)
		return nil, 0, err
	}
	return &countedReader{ReadCloser: blob, owner: i}, size, nil
}

func (i *instrumented) Delete(ctx context.Context, digest string) error {
	err := i.store.Delete(ctx, digest)
	if err != nil {
		i.failed(err)
	}
	return err
}

type countedReader struct {
	io.ReadCloser
	owner *instrumented
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.owner.metrics.readBytes.WithLabelValues(c.owner.layer).Add(float64(n))
	if err != nil && !errors.Is(err, io.EOF) {
		c.owner.failed(err)
	}
	return n, err
}
