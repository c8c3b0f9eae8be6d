// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	"kumodo.io/convoy/pkg/tunnel"
)

// reports holds the newest report of each Release until the hub acknowledges it.
// A newer one replaces an older one; each Release's go out ReportGap apart.
type reports struct {
	metrics *metrics
	engine  Reporting

	mu      sync.Mutex
	pending map[string]*pending
	wake    chan struct{} // one place: something is due sooner than was thought
}

type pending struct {
	report tunnel.Report
	raw    []byte    // of report, made when it is sent
	due    time.Time // not before
	flying bool      // in a request that is not answered
	failed int       // requests in a row
}

func newReports(m *metrics, engine Reporting) *reports {
	return &reports{metrics: m, engine: engine, pending: map[string]*pending{}, wake: make(chan struct{}, 1)}
}

// Report takes a report for the hub. It never blocks, and keeps the newest of
// each Release only.
func (l *Link) Report(r tunnel.Report) { l.reports.add(r) }

func (r *reports) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending)
}

func (r *reports) add(report tunnel.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.pending[report.Release.UID]
	switch {
	case !ok && len(r.pending) >= MaxPending:
		r.metrics.reports.WithLabelValues("dropped").Inc()
		return
	case !ok:
		p = &pending{}
		r.pending[report.Release.UID] = p
	case report.Counter < p.report.Counter:
		r.metrics.reports.WithLabelValues("older").Inc()
		return
	default:
		r.metrics.reports.WithLabelValues("replaced").Inc()
		if report.Inventory == nil && report.AppliedRef == p.report.AppliedRef {
			report.Inventory = p.report.Inventory // it was told once, and not taken yet
		}
	}
	p.report, p.raw, p.failed = report, nil, 0
	r.wakeUp()
}

func (r *reports) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// send posts what is due until ctx ends. What is pending from before a session is
// due at once.
func (r *reports) send(ctx context.Context, client *tunnel.Client) error {
	r.mu.Lock()
	for _, p := range r.pending {
		p.due, p.flying, p.failed = time.Time{}, false, 0
	}
	r.mu.Unlock()
	posts, ctx := errgroup.WithContext(ctx)
	posts.SetLimit(MaxPosts + 1) // and this loop
	posts.Go(func() error {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return fmt.Errorf("send reports: %w", ctx.Err())
			case <-r.wake:
			case <-timer.C:
			}
			for {
				batch, next := r.due(time.Now())
				if len(batch) == 0 {
					timer.Reset(next)
					break
				}
				posts.Go(func() error { r.post(ctx, client, batch); return nil })
			}
		}
	})
	if err := posts.Wait(); err != nil {
		return err // made above
	}
	return nil
}

// item is a report on its way.
type item struct {
	uid     string
	counter int64
	raw     []byte
}

// due takes what can be sent in one request, or tells how long that is away.
func (r *reports) due(now time.Time) ([]item, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var batch []item
	size := 0
	next := tunnel.BeatInterval
	for uid, p := range r.pending {
		if p.flying {
			continue
		}
		if wait := p.due.Sub(now); wait > 0 {
			next = min(next, wait)
			continue
		}
		if p.raw == nil {
			raw, err := json.Marshal(p.report)
			if err != nil || len(raw) > tunnel.MaxReportBodyLarge-1024 {
				// Cannot be told as it is; the next one of this Release may be.
				r.metrics.reports.WithLabelValues("dropped").Inc()
				delete(r.pending, uid)
				continue
			}
			p.raw = raw
		}
		if size > 0 && size+len(p.raw) > tunnel.MaxReportBody-1024 {
			continue // in the next request, which follows at once
		}
		size += len(p.raw) + 1
		p.flying = true
		batch = append(batch, item{uid, p.report.Counter, p.raw})
	}
	return batch, next
}

// post sends one batch and forgets what the hub has taken.
func (r *reports) post(ctx context.Context, client *tunnel.Client, batch []item) {
	defer r.wakeUp()
	ctx, cancel := context.WithTimeout(ctx, PostTimeout)
	defer cancel()
	body := struct {
		Reports []json.RawMessage `json:"reports"`
	}{make([]json.RawMessage, len(batch))}
	for i, it := range batch {
		body.Reports[i] = it.raw
	}
	var answer tunnel.ReportsAnswer
	err := client.Call(ctx, http.MethodPost, "/v1/reports", body, &answer)
	if err != nil && ctx.Err() == nil {
		logr.FromContextOrDiscard(ctx).Info("reports were not taken; trying again", "count", len(batch), "cause", err.Error())
	}
	for _, it := range batch {
		taken, ok := answer.Taken[it.uid]
		why, refused := answer.Refused[it.uid]
		switch {
		case refused:
			r.metrics.reports.WithLabelValues("refused").Inc()
			logr.FromContextOrDiscard(ctx).Info("report refused by the hub", "releaseUID", it.uid, "cause", why)
			r.done(it, it.counter, true)
		case ok:
			r.metrics.reports.WithLabelValues("taken").Inc()
			r.done(it, taken, true)
		default:
			r.done(it, 0, false)
		}
	}
}

func (r *reports) done(it item, counter int64, taken bool) {
	r.mu.Lock()
	p := r.pending[it.uid]
	if p != nil {
		p.flying = false
		p.due = time.Now().Add(ReportGap)
		switch {
		case taken && p.report.Counter <= max(counter, it.counter):
			delete(r.pending, it.uid)
		case taken: // a newer one has come; an inventory in it is told twice at worst
		default:
			p.failed = min(p.failed+1, 8)
			p.due = p.due.Add(ReportGap << p.failed)
		}
	}
	r.mu.Unlock()
	if taken {
		r.engine.Acknowledged(it.uid, it.counter)
	}
}
