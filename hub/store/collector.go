// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// Swept is a store whose unused blobs are collected.
type Swept interface {
	Lister
	// DeleteBefore forgets a blob that was last put before a time, and says whether
	// it did.
	DeleteBefore(ctx context.Context, digest string, before time.Time) (bool, error)
}

// CollectorOptions of a Collector. All but Clock are required.
type CollectorOptions struct {
	// Stores by layer.
	Stores map[string]Swept
	// Roots lists all that is referred to, as new as it is stored. An error means that
	// the list is not complete: then nothing is collected.
	Roots func(ctx context.Context) (Roots, error)
	// Interval between sweeps.
	Interval time.Duration
	Metrics  *Metrics
	Clock    clock.WithTicker
}

// Collector takes blobs away that nothing refers to and that were last put longer
// than Grace ago.
type Collector struct {
	options CollectorOptions
	clock   clock.WithTicker
	pace    *rate.Limiter
}

// NewCollector makes a Collector. It starts nothing.
func NewCollector(options CollectorOptions) *Collector {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Collector{options: options, clock: options.Clock, pace: rate.NewLimiter(sweepPerSecond, sweepPerSecond)}
}

// Run sweeps at each interval until ctx ends, the first time some while after the
// start.
func (c *Collector) Run(ctx context.Context) error {
	first := c.clock.NewTimer(max(sweepAfter, c.options.Interval))
	defer first.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-first.C():
	}
	tick := c.clock.NewTicker(c.options.Interval)
	defer tick.Stop()
	for {
		if err := c.Sweep(ctx); err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Error(err, "The render store was not swept to the end; nothing is lost by that")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
	}
}

// Sweep collects once. What is referred to is listed twice, before and after the
// list of blobs, and only what is in neither goes; a blob that is put meanwhile, or
// was within Grace, stays.
func (c *Collector) Sweep(ctx context.Context) error {
	before := c.clock.Now().Add(-Grace)
	deleted, err := c.sweep(ctx, before)
	result := "done"
	if err != nil {
		result = "failed"
	}
	c.options.Metrics.sweeps.WithLabelValues(result).Inc()
	if deleted > 0 {
		logr.FromContextOrDiscard(ctx).Info("Blobs that nothing refers to were taken out of the render store", "count", deleted)
	}
	return err
}

func (c *Collector) sweep(ctx context.Context, before time.Time) (deleted int, _ error) {
	roots, err := c.roots(ctx)
	if err != nil {
		return 0, err
	}
	unused := map[string][]string{}
	for layer, swept := range c.options.Stores {
		kept := 0
		err := swept.List(ctx, func(blob Info) error {
			if roots.Has(blob.Digest) || !blob.Stored.Before(before) || len(unused[layer]) >= maxSwept {
				kept++
				return nil
			}
			unused[layer] = append(unused[layer], blob.Digest)
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("list the %s layers: %w", layer, err)
		}
		c.options.Metrics.kept.WithLabelValues(layer).Set(float64(kept))
	}
	if roots, err = c.roots(ctx); err != nil {
		return 0, err
	}
	var failures error
	for layer, digests := range unused {
		for _, digest := range digests {
			if roots.Has(digest) {
				continue
			}
			if err := c.pace.Wait(ctx); err != nil {
				return deleted, fmt.Errorf("pace: %w", err)
			}
			gone, err := c.options.Stores[layer].DeleteBefore(ctx, digest, before)
			if err != nil {
				failures = errors.Join(failures, fmt.Errorf("collect %s: %w", digest, err))
				continue
			}
			if gone {
				deleted++
				c.options.Metrics.collected.WithLabelValues(layer).Inc()
			}
		}
	}
	return deleted, failures
}

func (c *Collector) roots(ctx context.Context) (Roots, error) {
	ctx, cancel := context.WithTimeout(ctx, rootsTimeout)
	defer cancel()
	roots, err := c.options.Roots(ctx)
	if err != nil {
		return nil, fmt.Errorf("list what is referred to: %w", err)
	}
	return roots, nil
}
