// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/hub/worker"
)

// pool keeps a few workers warm. A worker that has had a job belongs to that job's
// tenant for the rest of its life, so that nothing of one tenant is ever in the
// memory of a process that another tenant's files run in.
type pool struct {
	start func() (*worker.Process, error)
	clock clock.PassiveClock
	slots int
	all   *semaphore.Weighted // jobs at once
	wake  chan struct{}       // a spare is wanted

	mu      sync.Mutex
	closed  bool
	idle    []*member // the longest unused first
	busy    []*member
	active  sync.WaitGroup
	tenants map[string]*tenant
}

// member is a worker of the pool.
type member struct {
	*worker.Process
	tenant string // empty: never had a job
	jobs   int
	since  time.Time
}

// tenant bounds the jobs of one tenant, so that one with many slow Releases leaves
// slots to the others.
type tenant struct {
	jobs *semaphore.Weighted
	refs int
}

func newPool(start func() (*worker.Process, error), slots int, clock clock.PassiveClock) *pool {
	return &pool{
		start: start, clock: clock, slots: slots, all: semaphore.NewWeighted(int64(slots)),
		wake: make(chan struct{}, 1), tenants: map[string]*tenant{},
	}
}

// acquire waits for a slot and gives a worker; release must follow.
func (p *pool) acquire(ctx context.Context, name string) (*member, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrStopped
	}
	p.active.Add(1)
	t := p.tenants[name]
	if t == nil {
		t = &tenant{jobs: semaphore.NewWeighted(int64(max(1, p.slots/2)))}
		p.tenants[name] = t
	}
	t.refs++
	p.mu.Unlock()
	if err := t.jobs.Acquire(ctx, 1); err != nil {
		p.leave(name, t)
		return nil, err
	}
	if err := p.all.Acquire(ctx, 1); err != nil {
		t.jobs.Release(1)
		p.leave(name, t)
		return nil, err
	}
	m := p.take(name)
	if m == nil {
		process, err := p.start()
		if err != nil {
			p.done(name)
			return nil, err
		}
		m = &member{Process: process, tenant: name}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = append(p.busy, m)
	return m, nil
}

// take gives an idle worker of that tenant, or one that never had a job. One that
// died while it was idle (the kernel was short of memory) is left to those who end
// idle workers.
func (p *pool) take(name string) *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, want := range []string{name, ""} {
		// The one used last has the warmest memory.
		for i, m := range slices.Backward(p.idle) {
			if m.tenant != want || !m.Alive() {
				continue
			}
			p.idle = slices.Delete(p.idle, i, i+1)
			if m.tenant == "" {
				m.tenant = name
				p.wantSpare()
			}
			return m
		}
	}
	return nil
}

// wantSpare asks Run for a worker that never had a job.
func (p *pool) wantSpare() {
	select {
	case p.wake <- struct{}{}:
	default: // it is asked already
	}
}

// release takes a worker back. One that failed, or has done its share, is ended.
func (p *pool) release(m *member, usable bool) error {
	m.jobs++
	m.since = p.clock.Now()
	name := m.tenant
	var stop []*member
	p.mu.Lock()
	p.busy = slices.DeleteFunc(p.busy, func(other *member) bool { return other == m })
	if usable && m.jobs < jobsPerWorker && !p.closed {
		p.idle = append(p.idle, m)
		for len(p.idle) > p.slots+1 {
			stop = append(stop, p.idle[0])
			p.idle = p.idle[1:]
		}
	} else {
		stop = append(stop, m)
		p.wantSpare()
	}
	p.mu.Unlock()
	err := stopAll(stop)
	p.done(name)
	return err
}

// done gives a job's slots back.
func (p *pool) done(name string) {
	p.all.Release(1)
	p.mu.Lock()
	t := p.tenants[name]
	p.mu.Unlock()
	t.jobs.Release(1)
	p.leave(name, t)
}

func (p *pool) leave(name string, t *tenant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.refs--; t.refs == 0 {
		delete(p.tenants, name)
	}
	p.active.Done()
}

// run keeps a spare worker ready and ends those that nobody has used for a while.
func (p *pool) run(ctx context.Context, tick <-chan time.Time) error {
	var errs []error
	for ctx.Err() == nil {
		if err := p.addSpare(); err != nil {
			errs = append(errs, err)
			if len(errs) > 1 {
				errs = errs[1:] // a job says it too; the newest is enough
			}
		}
		select {
		case <-ctx.Done():
		case <-p.wake:
		case <-tick:
			if err := p.endIdle(); err != nil {
				errs = append(errs[:0], err)
			}
		}
	}
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	err := stopAll(idle)
	p.active.Wait()
	return errors.Join(append(errs, err)...)
}

func (p *pool) addSpare() error {
	p.mu.Lock()
	have := slices.ContainsFunc(p.idle, func(m *member) bool { return m.tenant == "" && m.Alive() })
	p.mu.Unlock()
	if have {
		return nil
	}
	process, err := p.start()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, &member{Process: process, since: p.clock.Now()})
	return nil
}

func (p *pool) endIdle() error {
	var stop []*member
	p.mu.Lock()
	p.idle = slices.DeleteFunc(p.idle, func(m *member) bool {
		old := !m.Alive() || m.tenant != "" && p.clock.Since(m.since) > idleTime
		if old {
			stop = append(stop, m)
		}
		return old
	})
	p.mu.Unlock()
	return stopAll(stop)
}

func stopAll(members []*member) error {
	var errs []error
	for _, m := range members {
		errs = append(errs, m.Stop())
	}
	return errors.Join(errs...)
}
