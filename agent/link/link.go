// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"kumodo.io/convoy/pkg/tunnel"
)

// Options of a link. Those without a default are required.
type Options struct {
	Engine    Engine
	Reporting Reporting
	Identity  IdentityStore
	// Token returns the text of a join token, "" when there is none. It is asked
	// before each dial.
	Token func(ctx context.Context) (string, error)
	// Hello describes the agent and its cluster; it is asked before each session.
	Hello func(ctx context.Context) (tunnel.Hello, error)

	// GatewayURL replaces the one of token and identity. Default: that.
	GatewayURL string
	// OuterCAFile adds CA certificates, PEM, for the connection outside the
	// websocket: of the gateway's terminator, or of a proxy. Read on each dial.
	OuterCAFile string
	// Dial makes the connection underneath. Default: TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Built is when the program was built: no clock is earlier. Default: none.
	Built time.Time
	// Backoff between dials. Default: DefaultBackoff.
	Backoff *Backoff
	// Now is the local clock. Default: time.Now.
	Now func() time.Time
	// Registerer of the metrics. Default: none.
	Registerer prometheus.Registerer
}

// Link keeps the agent connected. See Run.
type Link struct {
	opts    Options
	backoff Backoff
	metrics *metrics
	reports *reports
	fetches chan struct{}

	mu        sync.Mutex
	identity  *Identity
	session   *session      // nil when there is none
	arrived   chan struct{} // closed when a session comes
	tried     []byte        // public key of the token that was refused last
	hubTime   time.Time     // said by the hub
	hubTimeAt time.Time     // when that was, on our monotonic clock
}

// New checks the options. It neither dials nor starts anything.
func New(o Options) (*Link, error) {
	if o.Engine == nil || o.Reporting == nil || o.Identity == nil || o.Hello == nil {
		return nil, fmt.Errorf("%w: Engine, Reporting, Identity and Hello are required", ErrOptions)
	}
	if o.GatewayURL != "" {
		if err := tunnel.CheckGatewayURL(o.GatewayURL); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrOptions, err)
		}
	}
	if o.Token == nil {
		o.Token = func(context.Context) (string, error) { return "", nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: tunnel.HandshakeTimeout, KeepAlive: tunnel.PingInterval}).DialContext
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	l := &Link{opts: o, backoff: DefaultBackoff(), fetches: make(chan struct{}, tunnel.MaxBlobFetches), arrived: make(chan struct{})}
	if o.Backoff != nil {
		l.backoff = *o.Backoff
	}
	l.metrics = newMetrics(o.Registerer, l)
	l.reports = newReports(l.metrics, o.Reporting)
	return l, nil
}

// Connected tells whether there is a session.
func (l *Link) Connected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session != nil
}

// Run joins if need be and keeps a session until ctx ends. It only fails when
// the identity can neither be read nor made.
func (l *Link) Run(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx).WithName("link")
	ctx = logr.NewContext(ctx, log)
	id, err := l.opts.Identity.Load(ctx)
	if err != nil && !errors.Is(err, ErrNoIdentity) {
		return fmt.Errorf("read identity: %w", err)
	}
	l.setIdentity(id)
	wait := time.Duration(0)
	if id.Joined() { // a first join should not wait, a fleet that starts should
		wait = upTo(l.backoff.Start)
	}
	failures := 0
	for {
		if err := sleep(ctx, wait); err != nil {
			return nil //nolint:nilerr // the end was asked for
		}
		up, err := l.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, ErrRecycle) {
			log.V(1).Info("session ended as planned")
			failures, wait = 0, 0
			continue
		}
		if up >= l.backoff.Steady {
			failures = 0
		}
		failures++
		l.metrics.failures.WithLabelValues(cause(err, up)).Inc()
		wait = l.next(ctx, failures, up, err)
	}
}

// next tells how long to wait after a failure, and says so.
func (l *Link) next(ctx context.Context, failures int, up time.Duration, err error) time.Duration {
	log := logr.FromContextOrDiscard(ctx)
	problem, said := refused(err)
	var status *tunnel.StatusError
	hint := time.Duration(0)
	if errors.As(err, &status) {
		hint = status.RetryAfter
	}
	wait := l.backoff.wait(failures, up > 0, said, hint)
	if !said {
		log.Info("no session with the hub", "cause", err.Error(), "up", up.Round(time.Second).String(), "retryIn", wait.Round(time.Millisecond).String())
		return wait
	}
	log.Info("the hub refuses this agent", "reason", problem.Reason, "message", problem.Message, "retryIn", wait.Round(time.Second).String())
	return l.waitToken(ctx, wait)
}

// waitToken waits here for up to wait, and ends early when a new token has come.
func (l *Link) waitToken(ctx context.Context, wait time.Duration) time.Duration {
	before, err := l.opts.Token(ctx)
	if err != nil {
		return wait
	}
	for wait > 0 {
		step := min(wait, max(l.backoff.Look, time.Millisecond))
		if sleep(ctx, step) != nil {
			return 0
		}
		wait -= step
		if now, err := l.opts.Token(ctx); err == nil && now != before {
			return 0
		}
	}
	return 0
}

// cause is a label for metrics.
func cause(err error, up time.Duration) string {
	_, said := refused(err)
	switch {
	case said:
		return "refused"
	case up > 0:
		return "lost"
	case errors.Is(err, tunnel.ErrHub):
		return "untrusted"
	}
	return "dial"
}

// once makes one session and serves it to its end. up is how long it was.
func (l *Link) once(ctx context.Context) (up time.Duration, err error) {
	id, err := l.ensureIdentity(ctx)
	if err != nil {
		return 0, err
	}
	s, err := l.connect(ctx, id)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	l.setSession(s)
	l.metrics.sessions.Inc()
	err = s.serve(ctx)
	l.setSession(nil)
	return max(time.Since(began), 1), err
}

func (l *Link) setSession(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = s
	if s != nil {
		close(l.arrived)
		l.arrived = make(chan struct{})
	}
}

// waitSession returns a session as soon as there is one, ErrOffline after wait.
func (l *Link) waitSession(ctx context.Context, wait time.Duration) (*session, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		l.mu.Lock()
		s, arrived := l.session, l.arrived
		l.mu.Unlock()
		if s != nil {
			return s, nil
		}
		select {
		case <-arrived:
		case <-timer.C:
			return nil, ErrOffline
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrOffline, ctx.Err())
		}
	}
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

func (l *Link) setIdentity(id *Identity) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.identity = id
}

func (l *Link) currentIdentity() *Identity {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.identity
}

// now is the time to verify the hub with. A box that booted in 1970 must still
// find its hub: no clock is earlier than the build, or than what the hub said.
func (l *Link) now() time.Time {
	now := l.opts.Now()
	if now.Before(l.opts.Built) {
		now = l.opts.Built
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.identity != nil && now.Before(l.identity.HubTime) {
		now = l.identity.HubTime
	}
	if !l.hubTimeAt.IsZero() {
		if hub := l.hubTime.Add(time.Since(l.hubTimeAt)); now.Before(hub) {
			now = hub
		}
	}
	return now
}
