// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	"kumodo.io/convoy/pkg/tunnel"
)

// pump holds the newest report of each Release until the hub has taken it. A newer
// one replaces an older one; each Release's go out reportGap apart.
type pump struct {
	manager      *Manager
	cluster      tunnel.ClusterID
	acknowledged func(uid string, counter int64)

	mu      sync.Mutex
	pending map[string]*pending
	wake    chan struct{}
}

type pending struct {
	report tunnel.Report
	due    time.Time
	flying bool
	failed int
}

func newPump(m *Manager, cluster tunnel.ClusterID, acknowledged func(string, int64)) *pump {
	return &pump{manager: m, cluster: cluster, acknowledged: acknowledged, pending: map[string]*pending{}, wake: make(chan struct{}, 1)}
}

// add takes a report. It never blocks.
func (p *pump) add(report tunnel.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held, ok := p.pending[report.Release.UID]
	switch {
	case !ok && len(p.pending) >= maxPending:
		p.manager.metrics.reports.WithLabelValues("dropped").Inc()
		return
	case !ok:
		held = &pending{}
		p.pending[report.Release.UID] = held
	case report.Counter < held.report.Counter:
		p.manager.metrics.reports.WithLabelValues("older").Inc()
		return
	default:
		p.manager.metrics.reports.WithLabelValues("replaced").Inc()
		if report.Inventory == nil && report.AppliedRef == held.report.AppliedRef {
			report.Inventory = held.report.Inventory // it was told once, and not taken yet
		}
	}
	held.report, held.failed = report, 0
	signal(p.wake)
}

// run hands over what is due, until ctx ends.
func (p *pump) run(ctx context.Context) error {
	var posts errgroup.Group
	posts.SetLimit(maxPosts)
	clock := p.manager.clock
	for {
		batch, next := p.due(clock.Now())
		if len(batch) > 0 {
			posts.Go(func() error { p.post(ctx, batch); return nil })
			if ctx.Err() == nil {
				continue
			}
		}
		timer := clock.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return posts.Wait()
		case <-p.wake:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// due takes what can be told at once, or says how long that is away.
func (p *pump) due(now time.Time) ([]tunnel.Report, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := compareEvery
	var batch []tunnel.Report
	for _, held := range p.pending {
		if held.flying {
			continue
		}
		if wait := held.due.Sub(now); wait > 0 {
			next = min(next, wait)
			continue
		}
		if len(batch) == maxBatch {
			break
		}
		held.flying = true
		batch = append(batch, held.report)
	}
	return batch, next
}

func (p *pump) post(ctx context.Context, batch []tunnel.Report) {
	defer signal(p.wake)
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	answer := p.manager.opts.Reports.Observe(ctx, p.cluster, batch)
	for i := range batch {
		uid, counter := batch[i].Release.UID, batch[i].Counter
		taken, ok := answer.Taken[uid]
		if why, refused := answer.Refused[uid]; refused {
			logr.FromContextOrDiscard(ctx).Info("report refused", "releaseUID", uid, "cause", why)
			p.manager.metrics.reports.WithLabelValues("refused").Inc()
			taken, ok = counter, true
		} else if ok {
			p.manager.metrics.reports.WithLabelValues("taken").Inc()
		}
		p.done(uid, counter, taken, ok)
	}
}

func (p *pump) done(uid string, sent, taken int64, ok bool) {
	p.mu.Lock()
	if held := p.pending[uid]; held != nil {
		held.flying = false
		held.due = p.manager.clock.Now().Add(reportGap)
		switch {
		case ok && held.report.Counter <= max(taken, sent):
			delete(p.pending, uid)
		case ok: // a newer one has come meanwhile
		default:
			held.failed = min(held.failed+1, 8)
			held.due = held.due.Add(reportGap << held.failed)
		}
	}
	p.mu.Unlock()
	if ok {
		p.acknowledged(uid, sent)
	}
}
