// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"kumodo.io/convoy/pkg/tunnel"
)

// now is the time that it is at least, to verify the hub with. A box that booted in
// 1970 must still find its hub: no clock is earlier than the build, or than what
// the hub said.
func (l *Link) now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nowLocked()
}

func (l *Link) nowLocked() time.Time {
	now := l.opts.Now()
	if now.Before(l.opts.Built) {
		now = l.opts.Built
	}
	if l.identity != nil && now.Before(l.identity.HubTime) {
		now = l.identity.HubTime
	}
	if !l.hubTimeAt.IsZero() && !l.doubtful {
		if hub := l.hubTime.Add(time.Since(l.hubTimeAt)); now.Before(hub) {
			now = hub
		}
	}
	return now
}

// at is the time to judge a chain of certificates at: now, and no earlier than any
// of them was made. Who signed them has a clock: a chain of ours that is dated later
// than we think it is proves that our clock is behind, as that of a box that comes
// back from the dark without a battery is. One that has run out stays refused.
func (l *Link) at(chain []*x509.Certificate) time.Time {
	now := l.now()
	for _, cert := range chain {
		if now.Before(cert.NotBefore) {
			now = cert.NotBefore
		}
	}
	return now
}

// verifying is the configuration for the TLS inside the websocket. When the hub has
// proved itself, proved is the time that it is at least.
func (l *Link) verifying(trust tunnel.HubTrust, cert *tls.Certificate, proved *time.Time) *tls.Config {
	var chain []*x509.Certificate
	cfg := trust.Config(cert, func() time.Time { return l.at(chain) })
	verify := cfg.VerifyConnection
	cfg.VerifyConnection = func(cs tls.ConnectionState) error {
		chain = cs.PeerCertificates
		err := verify(cs)
		if err == nil {
			*proved = l.at(chain)
		}
		return err
	}
	return cfg
}

// believes tells whether it may be that time: not when a clock here that may be
// right is far behind it. A hub whose clock ran ahead for an hour must not make its
// agents refuse it for years.
func (l *Link) believes(hub time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	local := l.opts.Now()
	wrong := local.Before(l.opts.Built) || (l.identity != nil && local.Before(l.identity.HubTime))
	return wrong || hub.Sub(local) <= MaxHubLead
}

// heard remembers the hub's time, in storage now and then. A time at which its own
// certificate would have run out is no time.
func (l *Link) heard(ctx context.Context, now time.Time, peer *x509.Certificate) {
	log := logr.FromContextOrDiscard(ctx)
	if peer != nil && now.After(peer.NotAfter) {
		log.Info("the hub's time is not taken", "hubTime", now, "certificateExpires", peer.NotAfter)
		return
	}
	believed := l.believes(now)
	l.mu.Lock()
	l.hubTime, l.hubTimeAt, l.ahead, l.doubtful = now, time.Now(), l.opts.Now().Sub(now), !believed
	id, ahead := l.identity, l.ahead
	l.mu.Unlock()
	if ahead.Abs() > time.Minute {
		log.Info("the clock of this machine differs from the hub's; waits and intervals do not depend on it", "ahead", ahead.Round(time.Second).String())
	}
	if !believed || now.Sub(id.HubTime) < HubTimeGap {
		return
	}
	next := *id
	next.HubTime = now
	if err := l.opts.Identity.Save(ctx, &next); err != nil {
		log.Error(err, "the hub's time could not be saved")
		return
	}
	l.setIdentity(&next)
}

// HubNow is the hub's clock as well as it is known here: as it was last heard in
// this run, counted on by a clock that does not jump; before that the local clock,
// but nothing earlier than the build and what was heard in an earlier run.
func (l *Link) HubNow() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hubTimeAt.IsZero() {
		return l.nowLocked()
	}
	return l.hubTime.Add(time.Since(l.hubTimeAt))
}

// hubSince is the earliest time that it can be by the hub's clock.
func (l *Link) hubSince() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	var since time.Time
	if l.identity != nil {
		since = l.identity.HubTime
	}
	if !l.hubTimeAt.IsZero() {
		if hub := l.hubTime.Add(time.Since(l.hubTimeAt)); since.Before(hub) {
			since = hub
		}
	}
	return since
}

// skew is how far the local clock was ahead of the hub's when that was last heard.
func (l *Link) skew() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ahead
}

// clockError names the clock where the dates of a certificate are all that is wrong
// with it, so that nobody looks for the fault in keys.
func (l *Link) clockError(err error) error {
	var invalid x509.CertificateInvalidError
	if !errors.As(err, &invalid) || invalid.Reason != x509.Expired || invalid.Cert == nil {
		return err
	}
	return fmt.Errorf("%w: it is %s here, the certificate is valid from %s to %s: %w", ErrClock,
		l.now().UTC().Format(time.RFC3339), invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339), err)
}
