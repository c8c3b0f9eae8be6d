// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
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
}

// connect dials, authenticates both ends and says hello.
func (l *Link) connect(ctx context.Context, id *Identity) (*session, error) {
	hello, err := l.opts.Hello(ctx)
	if err != nil {
		return nil, fmt.Errorf("describe the cluster: %w", err)
	}
	cert, err := id.certificate()
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	trust, err := id.trust()
	if err != nil {
		return nil, err
	}
	keys, err := tunnel.PublicKeys(id.OrderKeys)
	if err != nil {
		return nil, fmt.Errorf("order keys: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	conn, err := l.dial(ctx, l.gateway(id), tunnel.SessionPath, trust)
	if err != nil {
		return nil, err
	}
	mux, err := tunnel.ClientSession(ctx, conn, trust.Config(cert, l.now), tunnel.MuxOptions{})
	if err != nil {
		return nil, err // says what failed
	}
	s := &session{link: l, id: id, keys: keys, mux: mux, client: tunnel.NewClient(mux), began: time.Now()}
	var answer tunnel.HelloAnswer
	err = s.client.Call(ctx, http.MethodPost, "/v1/hello", hello, &answer)
	if err == nil && answer.Hub != id.Hub {
		err = fmt.Errorf("%w: it says it is %q", tunnel.ErrHub, answer.Hub)
	}
	if err != nil {
		return nil, errors.Join(err, mux.Close())
	}
	l.heard(ctx, answer.Now)
	s.life, s.remaining = cert.Leaf.NotAfter.Sub(cert.Leaf.NotBefore), cert.Leaf.NotAfter.Sub(answer.Now)
	logr.FromContextOrDiscard(ctx).Info("connected", "gateway", l.gateway(id), "hubVersion", answer.HubVersion)
	return s, nil
}

// heard remembers the hub's time, in storage now and then.
func (l *Link) heard(ctx context.Context, now time.Time) {
	l.mu.Lock()
	l.hubTime, l.hubTimeAt = now, time.Now()
	id := l.identity
	l.mu.Unlock()
	if now.Sub(id.HubTime) < HubTimeGap {
		return
	}
	next := *id
	next.HubTime = now
	if err := l.opts.Identity.Save(ctx, &next); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "the hub's time could not be saved")
		return
	}
	l.setIdentity(&next)
}

// serve runs everything that a session carries until one part fails or ctx ends.
func (s *session) serve(ctx context.Context) error {
	server := tunnel.NewServer(s.link.routes(), func(ctx context.Context, _ any) context.Context { return ctx })
	server.ReadTimeout, server.WriteTimeout = tunnel.StallTimeout, tunnel.StallTimeout
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		<-ctx.Done()
		return errors.Join(context.Cause(ctx), s.mux.Close())
	})
	group.Go(func() error { return fmt.Errorf("serve the hub: %w", server.Serve(tunnel.Listener(s.mux))) })
	group.Go(func() error { return s.watch(ctx) })
	group.Go(func() error { return s.ping(ctx) })
	group.Go(func() error { return s.followOrders(ctx) })
	group.Go(func() error { return s.renew(ctx) })
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
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("watch session: %w", ctx.Err())
		case <-s.mux.Done():
			return fmt.Errorf("watch session: %w", tunnel.ErrClosed)
		case <-planned.C:
			return ErrRecycle
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
	d := min(tunnel.SessionTTL, s.remaining)
	return d - time.Duration(float64(d)*0.05*(0.2+0.8*rand.Float64())) // spreads load
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
	next, err := s.link.adopt(ctx, &with, &answer)
	if err != nil {
		return nil, err
	}
	cert, err := next.certificate()
	if err != nil {
		return nil, err
	}
	return cert.Leaf, nil
}
