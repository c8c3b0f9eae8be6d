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
	torn       *prometheus.CounterVec
	recovered  *prometheus.CounterVec
	sweeps     *prometheus.CounterVec
	collected  *prometheus.CounterVec
	kept       *prometheus.GaugeVec
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
		torn: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_store_torn_blobs_total", Help: "Torn blobs that were put aside.",
		}, []string{"layer"}),
		recovered: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_store_recoveries_total", Help: "Lost blobs that were looked for at agents, by result (done, failed).",
		}, []string{"layer", "result"}),
		sweeps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_store_sweeps_total", Help: "Sweeps for blobs that nothing refers to, by result (done, failed).",
		}, []string{"result"}),
		collected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "convoy_store_collected_blobs_total", Help: "Blobs taken out since nothing refers to them.",
		}, []string{"layer"}),
		kept: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "convoy_store_blobs", Help: "Blobs that the last sweep left.",
		}, []string{"layer"}),
	}
	for _, collector := range []prometheus.Collector{
		m.putSeconds, m.putBytes, m.readBytes, m.failures, m.torn, m.recovered, m.sweeps, m.collected, m.kept,
	} {
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
