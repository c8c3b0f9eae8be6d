// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	"kumodo.io/convoy/pkg/tunnel"
)

// session is one live link to the hub.
type session struct {
	link   *Link
	id     *Identity
	keys   []ed25519.PublicKey
	mux    *tunnel.Session
	client *tunnel.Client
	// remaining life of the certificate that it was made with, and of that when it
	// was made, by the hub's clock.
	life, remaining time.Duration
	began           time.Time

	asked  *asked
	away   chan time.Duration // one place: the hub asks for a pause
	within atomic.Int64       // of that pause, a time.Duration
}

// connect dials, authenticates both ends and says hello.
func (l *Link) connect(ctx context.Context, id *Identity) (*session, error) {
	hello, err := l.opts.Hello(ctx)
	if err != nil {
		return nil, fmt.Errorf("describe the cluster: %w", err)
	}
	hello.Now = l.opts.Now()
	cert, err := id.certificate()
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	trust, err := id.trust()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	conn, err := l.dial(ctx, l.gateway(id), tunnel.SessionPath, trust)
	if err != nil {
		return nil, l.clockError(err)
	}
	var proved time.Time
	mux, err := tunnel.ClientSession(ctx, conn, l.verifying(trust, cert, &proved), tunnel.MuxOptions{})
	if err != nil {
		if !proved.IsZero() {
			err = errors.Join(err, l.hungUp(cert.Leaf, proved))
		}
		return nil, l.clockError(err) // says what failed
	}
	s := &session{
		link: l, id: id, mux: mux, client: tunnel.NewClient(mux), began: time.Now(), asked: newAsked(), away: make(chan time.Duration, 1),
	}
	var answer tunnel.HelloAnswer
	err = s.client.Call(ctx, http.MethodPost, "/v1/hello", hello, &answer)
	var status *tunnel.StatusError
	if err != nil {
		err = errors.Join(err, mux.Close())
		if errors.As(err, &status) {
			l.answered()
		} else {
			err = errors.Join(err, rejection(mux), l.hungUp(cert.Leaf, proved))
		}
		return nil, err
	}
	if err := s.learn(ctx, &answer); err != nil {
		return nil, errors.Join(err, mux.Close())
	}
	l.answered()
	l.heard(ctx, answer.Now, mux.Peer)
	s.life, s.remaining = cert.Leaf.NotAfter.Sub(cert.Leaf.NotBefore), cert.Leaf.NotAfter.Sub(answer.Now)
	logr.FromContextOrDiscard(ctx).Info("connected", "gateway", l.gateway(id), "hubVersion", answer.HubVersion)
	return s, nil
}

// rejection says whether the peer ended a session that is closed with an alert of
// TLS: with version 1.3 it judges our certificate when our side has long gone on.
func rejection(mux *tunnel.Session) error {
	_, err := mux.Accept()
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return fmt.Errorf("%w: %w", ErrRejected, op)
	}
	return nil // it ended for another reason, which is known
}

// hungUp takes it for a rejection when a hub that proved itself ends a session
// without a word, and the certificate has run out by the time that it is at least:
// the alert that would say so can be lost. When that happens often in a row it may
// be the reason too, whatever the clock here says.
func (l *Link) hungUp(leaf *x509.Certificate, least time.Time) error {
	l.mu.Lock()
	l.silent++
	silent := l.silent
	l.mu.Unlock()
	switch {
	case !least.Before(leaf.NotAfter):
		return fmt.Errorf("%w, which has run out at %s", ErrRejected, leaf.NotAfter.UTC().Format(time.RFC3339))
	case silent >= MaxSilentEnds:
		return fmt.Errorf("%w: %d times", errSilentEnds, silent)
	}
	return nil
}

// answered: the hub spoke to us.
func (l *Link) answered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = 0
}

// learn takes what the hub's answer to hello says whom to trust from now on, and
// stores that before any order is taken.
func (s *session) learn(ctx context.Context, answer *tunnel.HelloAnswer) error {
	l := s.link
	if answer.Hub != s.id.Hub {
		return fmt.Errorf("%w: it says it is %q", tunnel.ErrHub, answer.Hub)
	}
	next, changed, err := s.id.withKeys(answer.OrderKeys, answer.HubCA, s.mux.Peer)
	if err != nil {
		return err // says what it is
	}
	if s.keys, err = tunnel.PublicKeys(next.OrderKeys); err != nil {
		return fmt.Errorf("order keys: %w", err)
	}
	if !changed {
		return nil
	}
	if err := l.opts.Identity.Save(ctx, next); err != nil {
		return fmt.Errorf("save the keys that the hub named: %w", err)
	}
	l.setIdentity(next)
	s.id = next
	logr.FromContextOrDiscard(ctx).Info("the hub named other keys", "orderKeys", len(next.OrderKeys), "formerOrderKeys", len(next.FormerOrderKeys))
	return nil
}

// serve runs everything that a session carries until one part fails or ctx ends.
func (s *session) serve(ctx context.Context) error {
	server := tunnel.NewServer(s.link.routes(), func(ctx context.Context, _ any) context.Context { return ctx })
	server.ReadTimeout, server.WriteTimeout = tunnel.StallTimeout, tunnel.StallTimeout
	group, ctx := errgroup.WithContext(ctx)
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	group.Go(func() error {
		<-ctx.Done()
		return errors.Join(context.Cause(ctx), s.mux.Close())
	})
	group.Go(func() error { return fmt.Errorf("serve the hub: %w", server.Serve(tunnel.Listener(s.mux))) })
	group.Go(func() error { return s.watch(ctx) })
	group.Go(func() error { return s.ping(ctx) })
	group.Go(func() error { return s.followOrders(ctx) })
	group.Go(func() error { return s.renew(ctx) })
	group.Go(func() error { return s.giveBack(ctx) })
	group.Go(func() error { return s.watchToken(ctx) })
	group.Go(func() error { return s.link.reports.send(ctx, s.client) })
	err := group.Wait()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), tunnel.HandshakeTimeout)
	defer cancel()
	if down := server.Shutdown(end); down != nil {
		err = errors.Join(err, fmt.Errorf("stop serving the hub: %w", down))
	}
	return err
}

// watch ends a session that is dead or has come to its planned end.
func (s *session) watch(ctx context.Context) error {
	tick := time.NewTicker(WatchInterval)
	defer tick.Stop()
	planned := time.NewTimer(s.plannedEnd())
	defer planned.Stop()
	leave := time.NewTimer(time.Hour)
	leave.Stop()
	defer leave.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("watch session: %w", ctx.Err())
		case <-s.mux.Done():
			return fmt.Errorf("watch session: %w", tunnel.ErrClosed)
		case <-planned.C:
			return ErrRecycle
		case within := <-s.away:
			leave.Reset(upTo(within))
		case <-leave.C:
			return &goAwayError{within: time.Duration(s.within.Load())}
		case <-tick.C:
			if d := s.mux.Conn.Silence(); d > tunnel.ReadSilence {
				return fmt.Errorf("%w: for %s", ErrSilent, d.Round(time.Second))
			}
			if d := s.mux.Conn.Blocked(); d > tunnel.WriteTimeout {
				return fmt.Errorf("%w: a write is blocked for %s", ErrSilent, d.Round(time.Second))
			}
		}
	}
}

// plannedEnd lies before the end of the certificate, and of the life that the
// multiplexer's bookkeeping is good for, at another moment for each agent.
func (s *session) plannedEnd() time.Duration {
	d := max(min(tunnel.SessionTTL, s.remaining), MinSession)
	return d - time.Duration(float64(d)*0.05*(0.2+0.8*rand.Float64())) // spreads load
}

// goAway takes the hub's word that it ends soon: the session ends at a random time
// within what it says. Only the first counts.
func (s *session) goAway(away tunnel.GoAway) {
	seconds := min(max(away.WithinSeconds, 1), int64(MaxGoAway/time.Second))
	within := time.Duration(seconds) * time.Second
	if s.within.CompareAndSwap(0, int64(within)) {
		s.away <- within
	}
}

// watchToken ends the session when a token has come that is to be joined with.
func (s *session) watchToken(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("watch join token: %w", ctx.Err())
		case <-s.link.opts.TokenChanged:
			if s.link.fresh(ctx) {
				return ErrNewToken
			}
		}
	}
}

// ping keeps the timers of everything between the two ends from running out.
func (s *session) ping(ctx context.Context) error {
	for {
		spread := 1 + tunnel.PingJitter*(2*rand.Float64()-1) // spreads load
		if err := sleep(ctx, time.Duration(float64(tunnel.PingInterval)*spread)); err != nil {
			return fmt.Errorf("ping: %w", err)
		}
		if _, err := s.mux.Ping(); err != nil {
			return err // says what failed
		}
	}
}

// renew asks for the next certificate at a random point of the last part of the
// life of the one there is, with a new key each time.
func (s *session) renew(ctx context.Context) error {
	used := s.life - s.remaining
	at := time.Duration(float64(s.life) * (tunnel.RenewFrom + (tunnel.RenewTo-tunnel.RenewFrom)*rand.Float64())) // spreads load
	wait := at - used
	for {
		if err := sleep(ctx, wait); err != nil {
			return fmt.Errorf("renew: %w", err)
		}
		next, err := s.renewOnce(ctx)
		if err != nil {
			s.link.metrics.renewals.WithLabelValues("failed").Inc()
			if ctx.Err() == nil {
				logr.FromContextOrDiscard(ctx).Error(err, "certificate could not be renewed; trying again")
			}
			wait = RenewRetry/2 + upTo(RenewRetry)
			continue
		}
		s.link.metrics.renewals.WithLabelValues("renewed").Inc()
		logr.FromContextOrDiscard(ctx).Info("certificate renewed", "expires", next.NotAfter)
		// This session ends with the old one; the next renewal is the next session's.
		wait = next.NotAfter.Sub(next.NotBefore)
	}
}

func (s *session) renewOnce(ctx context.Context) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	private, public, err := newClientKey()
	if err != nil {
		return nil, err
	}
	var answer tunnel.CertificateAnswer
	if err := s.client.Call(ctx, http.MethodPost, "/v1/renew", tunnel.RenewRequest{ClientKey: public}, &answer); err != nil {
		return nil, err // says what failed
	}
	with := *s.link.currentIdentity()
	with.ClientKey = private
	next, err := s.link.adopt(ctx, &with, &answer, s.mux.Peer)
	if err != nil {
		return nil, err
	}
	cert, err := next.certificate()
	if err != nil {
		return nil, err
	}
	return cert.Leaf, nil
}
