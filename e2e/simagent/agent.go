// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// stats of a whole fleet.
type stats struct {
	accepted, refused, applied, acknowledged, heads, fetchFailed, fetchRetried atomic.Int64
	// repeated orders are those that an agent had already.
	repeated atomic.Int64
	wire     wire
}

// engine stands in for the real one: it takes each order, fetches its layers,
// waits for settle, and says that all is well.
type engine struct {
	clusterUID string
	settle     time.Duration
	fetch      bool
	clock      clock.Clock
	stats      *stats
	link       *link.Link // set before Run
	ctx        context.Context
	work       sync.WaitGroup
	// headed is when the newest head came, in nanoseconds since 1970; 0: never.
	headed atomic.Int64

	mu      sync.Mutex
	orders  map[string]tunnel.Order
	newest  map[string]tunnel.Report
	counter int64
	closed  bool
}

func newEngine(ctx context.Context, s *stats, settle time.Duration, fetch bool) *engine {
	return &engine{
		settle: settle, fetch: fetch, clock: clock.RealClock{}, stats: s, ctx: ctx,
		orders: map[string]tunnel.Order{}, newest: map[string]tunnel.Report{}, counter: time.Now().UnixMilli(),
	}
}

// fetchTries of one layer: a hub that pushes to all at once may be slow.
const fetchTries = 5

var (
	errOlder   = errors.New("older than what is held")
	errForeign = errors.New("for another cluster")
	errDigest  = errors.New("not what was ordered")
)

// Accept implements link.Engine.
func (e *engine) Accept(order tunnel.Order, _ tunnel.Signed) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	held, ok := e.orders[order.Release.UID]
	var err error
	switch {
	case ok && order.Sequence < held.Sequence:
		err = errOlder
	case e.clusterUID != "" && order.ClusterUID != e.clusterUID:
		err = errForeign
	case e.closed:
		return context.Canceled
	}
	if err != nil {
		e.stats.refused.Add(1)
		r := e.newest[order.Release.UID]
		r.Release = order.Release
		r.Refused = &tunnel.Finding{Status: tunnel.False, Reason: v1alpha1.ReasonOrderRefused, Message: err.Error()}
		r.RefusedSequence = order.Sequence
		e.reportLocked(r)
		return err
	}
	if ok && order.Sequence == held.Sequence {
		e.stats.repeated.Add(1)
		return nil // what a real engine does with it
	}
	e.stats.accepted.Add(1)
	e.orders[order.Release.UID] = order
	e.work.Go(func() { e.carryOut(order) })
	return nil
}

func (e *engine) carryOut(order tunnel.Order) {
	started := e.clock.Now()
	finding := tunnel.Finding{Status: tunnel.True, Reason: v1alpha1.ReasonApplied}
	if e.fetch && order.Verb == tunnel.VerbApply {
		if err := e.fetchAll(order); err != nil {
			e.stats.fetchFailed.Add(1)
			finding = tunnel.Finding{Status: tunnel.False, Reason: v1alpha1.ReasonRenderRefused, Message: err.Error()}
		}
	}
	if e.settle > 0 {
		timer := e.clock.NewTimer(e.settle)
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-e.ctx.Done():
			return
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.orders[order.Release.UID].Sequence != order.Sequence {
		return // superseded
	}
	finished := e.clock.Now()
	r := tunnel.Report{
		Release: order.Release, Sequence: order.Sequence, Settled: true, Done: order.Verb != tunnel.VerbApply, Applied: finding,
		InSync:  tunnel.Finding{Status: tunnel.True, Reason: v1alpha1.ReasonInSync},
		Healthy: tunnel.Finding{Status: tunnel.True, Reason: v1alpha1.ReasonHealthy},
		Operation: &tunnel.Operation{
			Type: "Apply", Phase: "Succeeded", Sequence: order.Sequence, StartedAt: started, FinishedAt: &finished,
		},
	}
	if order.Objects != nil {
		r.AppliedRef = order.Objects.Digest
	}
	e.stats.applied.Add(1)
	e.reportLocked(r)
}

func (e *engine) fetchAll(order tunnel.Order) error {
	for _, l := range []*tunnel.Layer{order.Objects, order.Sealed} {
		if l == nil {
			continue
		}
		err := e.fetchOne(*l, l == order.Sealed, order.Release.UID)
		for try := 1; err != nil && try < fetchTries && !errors.Is(err, errDigest) && e.ctx.Err() == nil; try++ {
			e.stats.fetchRetried.Add(1)
			err = e.fetchOne(*l, l == order.Sealed, order.Release.UID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) fetchOne(l tunnel.Layer, sealed bool, uid string) (err error) {
	r, err := e.link.Open(e.ctx, l, sealed, uid)
	if err != nil {
		return fmt.Errorf("open layer: %w", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	h := sha256.New()
	n, err := io.Copy(h, r)
	if err != nil {
		return fmt.Errorf("read layer: %w", err)
	}
	if got := "sha256:" + hex.EncodeToString(h.Sum(nil)); got != l.Digest || n != l.Size {
		return fmt.Errorf("layer of %d bytes: %w", n, errDigest)
	}
	return nil
}

func (e *engine) reportLocked(r tunnel.Report) {
	e.counter++
	r.Counter, r.At = e.counter, e.clock.Now()
	e.newest[r.Release.UID] = r
	e.link.Report(r)
}

// Head implements link.Engine.
func (e *engine) Head(tunnel.Head, map[string]int64) {
	e.stats.heads.Add(1)
	e.headed.Store(e.clock.Now().UnixNano())
}

// Have implements link.Engine.
func (e *engine) Have() map[string]int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	have := make(map[string]int64, len(e.orders))
	for uid, o := range e.orders {
		have[uid] = o.Sequence
	}
	return have
}

// Acknowledged implements link.Reporting.
func (e *engine) Acknowledged(string, int64) { e.stats.acknowledged.Add(1) }

// Refuse implements link.Reporting.
func (e *engine) Refuse(release tunnel.ReleaseRef, sequence int64, finding tunnel.Finding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.refused.Add(1)
	r := e.newest[release.UID]
	r.Release, r.Refused, r.RefusedSequence = release, &finding, sequence
	e.reportLocked(r)
}

// Newest implements link.Reporting.
func (e *engine) Newest(uid string) (tunnel.Report, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r, ok := e.newest[uid]
	return r, ok
}

// close waits for what is being carried out; nothing is accepted any more.
func (e *engine) close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.work.Wait()
}

// identities keeps one identity in memory.
type identities struct {
	mu sync.Mutex
	id *link.Identity
}

// Load implements link.IdentityStore.
func (m *identities) Load(context.Context) (*link.Identity, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.id == nil {
		return nil, link.ErrNoIdentity
	}
	return m.id, nil
}

// Save implements link.IdentityStore.
func (m *identities) Save(_ context.Context, id *link.Identity) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.id = id
	return nil
}
