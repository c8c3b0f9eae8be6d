// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
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

	// Holder gives back what the hub lost. Default: nothing is given back.
	Holder Holder
	// Inspector answers for single objects. Default: nothing is answered.
	Inspector Inspector
	// TokenChanged carries a value when there may be another token. Nil: while the
	// hub refuses the agent, Token is asked each Backoff.Look.
	TokenChanged <-chan struct{}

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
	// RestartAfter: give or take half of it without so much as a connection, and Run
	// ends with ErrUnreached. 0: never.
	RestartAfter time.Duration
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
	layers  chan struct{}

	mu        sync.Mutex
	identity  *Identity
	session   *session      // nil when there is none
	arrived   chan struct{} // closed when a session comes
	tried     []byte        // public key of the token that was refused last
	hubTime   time.Time     // said by the hub
	hubTimeAt time.Time     // when that was, on our monotonic clock
	ahead     time.Duration // of the hub's clock, when that was
	doubtful  bool          // hubTime is not believed to be the time
	leave     bool          // the token of another Cluster may be taken
	tookTurn  bool          // it was tried since the last failure
	noted     []byte        // public key of the token of another Cluster that was told of
	reached   time.Time     // when the last connection came about
	silent    int           // sessions in a row that a hub ended that proved itself and said nothing
	recovered time.Time     // when the hub's word alone last led to a recovery
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
	l := &Link{opts: o, backoff: DefaultBackoff(), fetches: make(chan struct{}, tunnel.MaxBlobFetches), layers: make(chan struct{}, MaxLayersGiven), arrived: make(chan struct{})}
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

// Run joins if need be and keeps a session until ctx ends. It only fails when the
// identity can neither be read nor made, and with ErrUnreached.
func (l *Link) Run(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx).WithName("link")
	ctx = logr.NewContext(ctx, log)
	id, err := l.opts.Identity.Load(ctx)
	if err != nil && !errors.Is(err, ErrNoIdentity) {
		return fmt.Errorf("read identity: %w", err)
	}
	l.setIdentity(id)
	l.reach()
	unreached := l.opts.RestartAfter/2 + upTo(l.opts.RestartAfter)
	wait := time.Duration(0)
	if id.Joined() { // a first join should not wait, a fleet that starts should
		wait = upTo(l.backoff.Start)
	}
	failures, said, lost := 0, false, time.Now()
	for {
		if l.pause(ctx, wait, said) != nil {
			return nil // the end was asked for
		}
		up, err := l.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if up > 0 {
			lost = time.Now()
			l.reach()
		}
		var away *goAwayError
		switch {
		case errors.Is(err, ErrRecycle), errors.Is(err, ErrNewToken):
			log.V(1).Info("session ended as planned", "cause", err.Error())
			failures, wait, said = 0, 0, false
			continue
		case errors.As(err, &away):
			failures, wait, said = 0, upTo(away.within), false
			log.Info("session ended, as the hub asked", "redialIn", wait.Round(time.Millisecond).String())
			continue
		}
		if up >= l.backoff.Steady {
			failures = 0
		}
		failures++
		l.metrics.failures.WithLabelValues(cause(err, up)).Inc()
		if silent := l.unreached(); l.opts.RestartAfter > 0 && errors.Is(err, errUnreachable) && silent > unreached {
			return fmt.Errorf("%w: for %s: %w", ErrUnreached, silent.Round(time.Second), err)
		}
		wait, said = l.next(ctx, failures, up, time.Since(lost), err)
	}
}

// next tells how long to wait after a failure, and whether that is since the hub
// does not want this agent; and says so.
func (l *Link) next(ctx context.Context, failures int, up, away time.Duration, err error) (time.Duration, bool) {
	log := logr.FromContextOrDiscard(ctx)
	problem, said := refused(err)
	var status *tunnel.StatusError
	hint := time.Duration(0)
	if errors.As(err, &status) {
		hint = status.RetryAfter
	}
	rejected := errors.Is(err, ErrRejected)
	wait := l.backoff.wait(failures, up > 0, said || rejected, hint)
	untrusted := errors.Is(err, tunnel.ErrHub) && !errors.Is(err, ErrClock)
	wait, now := l.weigh(ctx, wait, said || away > LeaveAbsent || (untrusted && away > LeaveUntrusted))
	if now {
		log.Info("no session with the hub; a join token of another Cluster is tried", "cause", err.Error())
		return 0, false
	}
	if said {
		l.metrics.setRefused(problem.Reason)
		log.Info("the hub refuses this agent; what was ordered is enforced all the same", "reason", problem.Reason, "message", problem.Message, "retryIn", wait.Round(time.Second).String())
		return wait, true
	}
	if status != nil && status.Code == http.StatusConflict {
		l.metrics.setRefused(status.Problem.Reason) // for now: it says when to ask again
	}
	log.Info("no session with the hub", "cause", err.Error(), "up", up.Round(time.Second).String(), "retryIn", wait.Round(time.Millisecond).String())
	return wait, rejected
}

// pause waits. It ends early when a token has come that is to be joined with.
func (l *Link) pause(ctx context.Context, wait time.Duration, refused bool) error {
	if wait <= 0 {
		return ctx.Err() // nothing to add
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var look <-chan time.Time
	if l.opts.TokenChanged == nil && refused {
		ticker := time.NewTicker(max(l.backoff.Look, time.Millisecond))
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err() // nothing to add
		case <-timer.C:
			return nil
		case <-look:
		case <-l.opts.TokenChanged:
		}
		if l.fresh(ctx) {
			return nil
		}
	}
}

// cause is a label for metrics.
func cause(err error, up time.Duration) string {
	_, said := refused(err)
	switch {
	case said:
		return "refused"
	case up > 0:
		return "lost"
	case errors.Is(err, ErrRejected):
		return "rejected"
	case errors.Is(err, ErrClock):
		return "clock"
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
	if (errors.Is(err, ErrRejected) || errors.Is(err, errSilentEnds)) && l.mayRecover() {
		// The hub's clock counts: by it the certificate may have run out.
		if id, err = l.recover(ctx, id); err == nil {
			s, err = l.connect(ctx, id)
		}
	}
	if err != nil {
		return 0, err
	}
	began := time.Now()
	l.setLeave(false)
	l.metrics.setRefused("")
	l.setSession(s)
	l.metrics.sessions.Inc()
	err = s.serve(ctx)
	l.setSession(nil)
	var away *goAwayError
	if within := time.Duration(s.within.Load()); within > 0 && !errors.As(err, &away) {
		err = errors.Join(&goAwayError{within: within}, err) // the hub ended it first
	}
	return max(time.Since(began), 1), err
}

// mayRecover tells whether the hub's word alone may lead to a recovery: not again
// and again, should it accept no certificate at all.
func (l *Link) mayRecover() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.recovered.IsZero() && time.Since(l.recovered) < l.backoff.RefusedMin {
		return false
	}
	l.recovered, l.silent = time.Now(), 0
	return true
}

// reach remembers that something answered.
func (l *Link) reach() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reached = time.Now()
}

func (l *Link) unreached() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.reached)
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
