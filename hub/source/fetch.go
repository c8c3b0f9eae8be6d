// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"os"

	"kumodo.io/convoy/api/source/v1alpha1"
)

// Snapshot gives the content of a revision that Resolve gave: from memory or disk,
// else fetched.
func (c *Coordinator) Snapshot(ctx context.Context, w Want, revision Revision) (*Snapshot, error) {
	if revision.Key == "" {
		return nil, failure(v1alpha1.ReasonInvalid, "there is no revision to fetch")
	}
	name := snapshotName(w.Object, revision.Key)
	return c.fetchOnce(ctx, name, w.Object.GetNamespace(), w.Object, func(ctx context.Context) (fetchJob, error) { return c.job(ctx, w, revision) })
}

// fetchOnce gives a snapshot by its name, and has it fetched by one of those who want
// it. The source is nil where it is not known beforehand who is asked.
func (c *Coordinator) fetchOnce(ctx context.Context, name, tenant string, of v1alpha1.Source, job func(context.Context) (fetchJob, error)) (*Snapshot, error) {
	if found := c.cache.get(name); found != nil {
		known(c.metrics.fetches)
		return found, nil
	}
	flight := c.snapshots.start(c, name, func(ctx context.Context) (*Snapshot, error) {
		start := c.clock.Now()
		found, err := c.fetch(ctx, name, tenant, of, job)
		err = explain(err)
		c.metrics.fetched(err, c.clock.Since(start))
		if c.ctx.Err() != nil {
			return nil, ErrStopped
		}
		return found, err
	})
	return flight.wait(ctx)
}

func (c *Coordinator) fetch(ctx context.Context, name, tenant string, of v1alpha1.Source, makeJob func(context.Context) (fetchJob, error)) (found *Snapshot, err error) {
	at, who := "", ""
	if of != nil {
		at, who = origin(of.SourceURL()), identity(of)
	}
	disembark, err := c.tenants.enter(ctx, tenant, visitFetch)
	if err != nil {
		return nil, err
	}
	defer disembark()
	leave, err := c.hosts.enter(ctx, at, who, visitFetch)
	if err != nil {
		return nil, err
	}
	defer func() { leave(err) }()
	if err := c.fetching.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer c.fetching.Release(1)
	if found := c.cache.get(name); found != nil { // fetched while this one waited
		return found, nil
	}
	job, err := makeJob(ctx)
	if err != nil {
		return nil, err
	}
	if job.Dir, err = c.cache.temp(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(job.Dir)) }()
	fetched, err := c.runFetch(ctx, job)
	if err != nil {
		return nil, err
	}
	c.metrics.fetchBytes.Add(float64(fetched.TransferBytes))
	return c.cache.put(job.Dir, name)
}
