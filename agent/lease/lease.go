// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
)

// Options of an Elector. Those without a default are required.
type Options struct {
	// Config reaches the cluster.
	Config *rest.Config
	// Namespace of the Lease convoy-agent.
	Namespace string
	// Holder names this process. One that finds its own name in the Lease takes it at
	// once: no two that live may have the same.
	Holder string
	// Gone tells whether another holder has certainly ended, so that there is nothing
	// to wait for. Default: never.
	Gone func(holder string) bool
	// Registerer of the metrics. Default: none.
	Registerer prometheus.Registerer
}

// Elector holds the Lease for this process. See Hold.
type Elector struct {
	store   store
	holder  string
	gone    func(string) bool
	metrics *metrics
	held    atomic.Bool
}

// New makes an Elector. It calls nothing.
func New(o Options) (*Elector, error) {
	if o.Config == nil || o.Namespace == "" || o.Holder == "" {
		return nil, ErrOptions
	}
	s, err := newClient(o.Config, o.Namespace)
	if err != nil {
		return nil, err
	}
	return newElector(s, o), nil
}

func newElector(s store, o Options) *Elector {
	if o.Gone == nil {
		o.Gone = func(string) bool { return false }
	}
	e := &Elector{store: s, holder: o.Holder, gone: o.Gone}
	e.metrics = newMetrics(o.Registerer, e)
	return e
}

// Held tells whether this process has the Lease.
func (e *Elector) Held() bool { return e.held.Load() }

// Hold waits for the Lease, runs f, and gives the Lease back when f has returned, so
// that the next holder need not wait. The context of f ends, with ErrLost as its
// cause, Margin before anybody else may take the Lease. That the API server is away
// is no loss by itself. It returns what f does, ErrLost added if that is why.
func (e *Elector) Hold(ctx context.Context, f func(ctx context.Context) error) error {
	log := logr.FromContextOrDiscard(ctx).WithName("lease")
	ctx = logr.NewContext(ctx, log)
	have, until, err := e.acquire(ctx)
	if err != nil {
		return err
	}
	e.held.Store(true)
	log.Info("this agent has the Lease: it dials and applies", "holder", e.holder)
	inner, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	renewing, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var err error
		if have, err = e.renew(renewing, have, until); err != nil {
			e.held.Store(false)
			lose(err)
		}
	}()
	err = f(inner)
	stop()
	<-done
	if cause := context.Cause(inner); errors.Is(cause, ErrLost) {
		return errors.Join(cause, err)
	}
	e.held.Store(false)
	e.giveBack(ctx, have)
	return err
}

// acquire waits until the Lease is this process's, and says until when.
func (e *Elector) acquire(ctx context.Context) (record, time.Time, error) {
	log := logr.FromContextOrDiscard(ctx)
	var seen spec       // as it was when
	var since time.Time // it was first seen so
	var told, said string
	for {
		began := time.Now()
		have, err := e.try(ctx, func(ctx context.Context) (record, error) { return e.attempt(ctx, seen, since) })
		wait := retryEvery
		switch {
		case ctx.Err() != nil:
			return record{}, time.Time{}, fmt.Errorf("wait for the Lease: %w", ctx.Err())
		case err == nil && have.spec.holder == e.holder:
			return have, began.Add(Duration - Margin), nil
		case err == nil:
			if since.IsZero() || have.spec.holder != seen.holder || !have.spec.renewed.Equal(seen.renewed) {
				seen, since = have.spec, time.Now()
			}
			if told != seen.holder {
				told = seen.holder
				log.Info("another agent has the Lease; waiting, neither dialling nor applying", "holder", seen.holder)
			}
			wait = max(min(RenewEvery, time.Until(since.Add(seen.lasts()))), 0)
		case errors.Is(err, errChanged), errors.Is(err, errExists):
			// Somebody was quicker: look who.
		case said != err.Error():
			said = err.Error()
			log.Error(err, "the Lease cannot be had; trying again")
		}
		if err := sleep(ctx, wait); err != nil {
			return record{}, time.Time{}, fmt.Errorf("wait for the Lease: %w", err)
		}
	}
}

// attempt looks at the Lease and takes it if it may. It returns what is stored. seen
// is how it was when it was looked at before, and since when.
func (e *Elector) attempt(ctx context.Context, seen spec, since time.Time) (record, error) {
	have, err := e.store.get(ctx)
	if errors.Is(err, errNotFound) {
		return e.store.create(ctx, e.mine(spec{}))
	}
	if err != nil {
		return record{}, err
	}
	holder := have.spec.holder
	expired := !since.IsZero() && holder == seen.holder && have.spec.renewed.Equal(seen.renewed) && time.Since(since) >= seen.lasts()
	if holder == "" || holder == e.holder || expired || e.gone(holder) {
		return e.store.update(ctx, have.version, e.mine(have.spec))
	}
	return have, nil
}

// lasts is how long a Lease is good for since it was last seen to be renewed.
func (s spec) lasts() time.Duration {
	if s.duration <= 0 {
		return Duration
	}
	return min(s.duration, maxDuration)
}

// mine is the Lease as this process's, after old.
func (e *Elector) mine(old spec) spec {
	now := time.Now()
	next := spec{holder: e.holder, duration: Duration, acquired: now, renewed: now, transitions: old.transitions}
	if old.holder == e.holder && !old.acquired.IsZero() {
		next.acquired = old.acquired
	} else if !old.renewed.IsZero() {
		next.transitions++
	}
	return next
}

// renew keeps the Lease until ctx ends, which gives no error. have is what is stored,
// until when it is safe without a further renewal.
func (e *Elector) renew(ctx context.Context, have record, until time.Time) (record, error) {
	log := logr.FromContextOrDiscard(ctx)
	wait := RenewEvery
	for {
		if sleep(ctx, min(wait, time.Until(until))) != nil {
			return have, nil
		}
		began := time.Now()
		if !began.Before(until) {
			e.metrics.lost.Inc()
			return have, fmt.Errorf("%w: it could not be renewed for %s", ErrLost, (Duration - Margin).String())
		}
		limited, cancel := context.WithDeadline(ctx, until)
		next, err := e.try(limited, func(ctx context.Context) (record, error) { return e.again(ctx, have) })
		cancel()
		switch {
		case ctx.Err() != nil:
			return have, nil // the next holder waits, should this renewal have been lost with it
		case errors.Is(err, ErrLost):
			e.metrics.lost.Inc()
			return have, err
		case err != nil:
			e.metrics.failures.Inc()
			wait = retryEvery
			log.Info("the Lease could not be renewed; trying again", "cause", err.Error(), "goodFor", time.Until(until).Round(time.Second).String())
		default:
			have, until, wait = next, began.Add(Duration-Margin), RenewEvery
		}
	}
}

// again renews once. Somebody who changed the Lease and not its holder, or deleted
// it, takes nothing away.
func (e *Elector) again(ctx context.Context, have record) (record, error) {
	next, err := e.store.update(ctx, have.version, e.mine(have.spec))
	switch {
	case errors.Is(err, errNotFound):
		return e.store.create(ctx, e.mine(have.spec))
	case !errors.Is(err, errChanged):
		return next, err
	}
	now, err := e.store.get(ctx)
	if err != nil {
		return record{}, err
	}
	if now.spec.holder != e.holder {
		return record{}, fmt.Errorf("%w: %q has it", ErrLost, now.spec.holder)
	}
	return e.store.update(ctx, now.version, e.mine(now.spec))
}

// giveBack leaves the Lease without a holder.
func (e *Elector) giveBack(ctx context.Context, have record) {
	log := logr.FromContextOrDiscard(ctx)
	free := func(s spec) spec {
		s.holder, s.duration, s.renewed = "", time.Second, time.Now()
		return s
	}
	_, err := e.try(context.WithoutCancel(ctx), func(ctx context.Context) (record, error) {
		next, err := e.store.update(ctx, have.version, free(have.spec))
		if !errors.Is(err, errChanged) {
			return next, err
		}
		// The last renewal may have come through although its answer did not.
		now, err := e.store.get(ctx)
		if err != nil || now.spec.holder != e.holder {
			return now, err
		}
		return e.store.update(ctx, now.version, free(now.spec))
	})
	if err == nil || errors.Is(err, errNotFound) {
		log.V(1).Info("gave the Lease back")
		return
	}
	// Nothing is wrong here: the next agent waits until it has run out.
	log.Info("the Lease could not be given back", "cause", err.Error())
}

// try bounds one attempt.
func (e *Elector) try(ctx context.Context, f func(ctx context.Context) (record, error)) (record, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return f(ctx)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err() // nothing to add
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err() // nothing to add
	}
}
