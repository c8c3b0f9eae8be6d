// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"kumodo.io/convoy/pkg/tunnel"
)

// Options of a gateway. Those without a default are required.
type Options struct {
	// Addr to listen on, unless Listener is given.
	Addr     string
	Listener net.Listener
	// Plain: no TLS of our own outside the websocket, since something in front
	// ends it. The TLS inside is the same either way.
	Plain bool
	// Names in the certificate outside the websocket: DNS names, IP addresses.
	// Default: localhost and the loopback addresses.
	Names []string

	// HubID in certificates and orders.
	HubID string
	// CA and CASigner sign the certificates of agents.
	CA       *x509.Certificate
	CASigner crypto.Signer
	// ServerCA and ServerSigner sign the certificates of the gateway itself: an older
	// CA, as long as there may be agents that know no other. Default: CA, CASigner.
	ServerCA     *x509.Certificate
	ServerSigner crypto.Signer
	// HubCAs are all CAs that agents and hub may prove themselves with, old and new.
	// Asked for at each handshake and hello, so they may change. CA and ServerCA need
	// not be among them. Default: none but these.
	HubCAs func() []*x509.Certificate
	// OrderKeys are the public keys that agents are told to trust for orders, old and
	// new; at least one. Asked for at each hello, so they may change.
	OrderKeys func() [][]byte
	// Version of the hub, for people.
	Version string

	Orders   Orders
	Blobs    Blobs
	Reports  Reports
	Clusters Clusters
	Held     Held
	Resets   Resets

	// Changed is told when a Cluster gets its first session and loses its last one,
	// in that order for each. It must not block. May be nil.
	Changed func(cluster tunnel.ClusterID, connected bool)

	// Notice is told what people should know of a Cluster: by a reason of
	// api/core/v1alpha1 and a message. It must not block. May be nil.
	Notice func(cluster tunnel.ClusterID, reason, message string)

	// Occupied tells that an engine of the hub's own works on the target with that
	// kube-system UID: no agent may beside it. Default: none does.
	Occupied func(targetUID string) bool

	// RenewGap replaces RenewGap, the constant; negative means none.
	RenewGap time.Duration
	// DrainTimeout replaces DrainTimeout, the constant; negative means that an ordered
	// end waits for nobody.
	DrainTimeout time.Duration
	// StreamBudget replaces tunnel.StreamBudget, in bytes.
	StreamBudget int64
	// Now is the time for certificates, tokens and nonces. Default: time.Now.
	Now func() time.Time
	// Registerer of the metrics. Default: none.
	Registerer prometheus.Registerer
	// PerIP replaces MaxHandshakesPerIP; negative means no limit.
	PerIP int
}

// Gateway serves the links. See Run.
type Gateway struct {
	opts    Options
	issuer  tunnel.Issuer
	budget  *tunnel.Budget
	metrics *metrics

	joinTLS   *tls.Config
	inside    *leaf
	outer     *leaf
	trusted   trustCache
	admission *admission
	enroll    *rate.Limiter
	nonces    *nonces
	joined    *joined
	sessions  *Sessions
	conflicts *conflicts
	inner     *http.Server // streams of sessions
	join      *http.Server // streams of the join endpoint
	streams   *tunnel.Streams
	joining   *tunnel.Streams
	large     chan struct{}
	encoders  chan struct{}

	// Set by Run before anything is served.
	log     logr.Logger
	started time.Time
	running sync.WaitGroup
	bound   atomic.Pointer[net.Addr]
	ready   chan struct{}
	// draining is closed when an ordered end begins; within is set before.
	draining chan struct{}
	within   time.Duration

	ending sync.RWMutex
	ended  bool // guarded by ending: nothing is started any more
}

// New checks the options and makes a gateway. It neither listens nor starts
// anything. It fails with ErrOptions when agents could not be authenticated.
func New(o Options) (*Gateway, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	if o.Changed == nil {
		o.Changed = func(tunnel.ClusterID, bool) {}
	}
	if o.Notice == nil {
		o.Notice = func(tunnel.ClusterID, string, string) {}
	}
	if o.RenewGap == 0 {
		o.RenewGap = RenewGap
	}
	if o.DrainTimeout == 0 {
		o.DrainTimeout = DrainTimeout
	}
	if o.StreamBudget == 0 {
		o.StreamBudget = tunnel.StreamBudget
	}
	if o.ServerCA == nil && o.ServerSigner == nil {
		o.ServerCA, o.ServerSigner = o.CA, o.CASigner
	}
	if o.Occupied == nil {
		o.Occupied = func(string) bool { return false }
	}
	if len(o.Names) == 0 {
		o.Names = []string{"localhost", "127.0.0.1", "::1"}
	}
	if err := check(o); err != nil {
		return nil, err
	}
	g := &Gateway{
		opts:   o,
		issuer: tunnel.Issuer{Hub: o.HubID, CA: o.CA, Signer: o.CASigner},
		budget: tunnel.NewBudget(o.StreamBudget),

		enroll:   rate.NewLimiter(EnrollRate, EnrollBurst),
		nonces:   newNonces(o.Now),
		joined:   &joined{who: map[string]string{}},
		sessions: newSessions(o.Changed),
		large:    make(chan struct{}, MaxLargeBodies),
		encoders: make(chan struct{}, MaxEncoders),
		ready:    make(chan struct{}),

		streams: tunnel.NewStreams(), joining: tunnel.NewStreams(),
		conflicts: &conflicts{at: map[string]conflicted{}},
		draining:  make(chan struct{}),
	}
	perIP := MaxHandshakesPerIP
	if o.Plain {
		perIP = -1
	}
	if o.PerIP != 0 {
		perIP = o.PerIP
	}
	g.admission = newAdmission(perIP)
	g.metrics = newMetrics(o.Registerer, g)
	server := tunnel.Issuer{Hub: o.HubID, CA: o.ServerCA, Signer: o.ServerSigner}
	g.inside = &leaf{issuer: server, names: []string{tunnel.HubServerName(o.HubID)}, now: o.Now}
	g.outer = &leaf{issuer: server, names: o.Names, now: o.Now}
	if _, err := g.trusted.get(g); err != nil {
		return nil, err
	}
	g.joinTLS = tunnel.JoinServerConfig(g.inside.get, o.Now)
	g.inner = tunnel.NewServer(g.sessionRoutes(), withSession)
	g.join = tunnel.NewServer(g.joinRoutes(), func(ctx context.Context, _ any) context.Context { return ctx })
	o.Orders.Watch(g.ordersChanged)
	g.join.ReadTimeout, g.join.WriteTimeout = tunnel.HandshakeTimeout, tunnel.HandshakeTimeout
	return g, nil
}

func check(o Options) error {
	var missing []error
	need := func(ok bool, what string) {
		if !ok {
			missing = append(missing, fmt.Errorf("%w: %s is missing", ErrOptions, what))
		}
	}
	need(o.Addr != "" || o.Listener != nil, "an address to listen on")
	need(o.HubID != "", "the hub id")
	need(o.CA != nil && o.CA.IsCA, "the CA that agents are verified against")
	need(o.CASigner != nil, "the CA's key")
	need(o.OrderKeys != nil && len(o.OrderKeys()) > 0, "the key that orders are signed with")
	need(o.Orders != nil && o.Blobs != nil && o.Reports != nil && o.Clusters != nil, "one of Orders, Blobs, Reports, Clusters")
	need(o.Held != nil && o.Resets != nil, "one of Held, Resets")
	need(o.ServerCA != nil && o.ServerCA.IsCA, "the CA that the gateway proves itself with")
	need(o.ServerSigner != nil, "the key of the CA that the gateway proves itself with")
	fits := func(ca *x509.Certificate, signer crypto.Signer) {
		if ca == nil || signer == nil {
			return // said already
		}
		type comparable interface{ Equal(crypto.PublicKey) bool }
		public, ok := ca.PublicKey.(comparable)
		need(ok && public.Equal(signer.Public()), "the key of that CA (another was given)")
	}
	fits(o.CA, o.CASigner)
	fits(o.ServerCA, o.ServerSigner)
	return errors.Join(missing...)
}

// Sessions is the table of the live sessions.
func (g *Gateway) Sessions() *Sessions { return g.sessions }

// Addr is where the gateway listens, nil before Ready.
func (g *Gateway) Addr() net.Addr {
	if a := g.bound.Load(); a != nil {
		return *a
	}
	return nil
}

// Ready is closed when the gateway listens.
func (g *Gateway) Ready() <-chan struct{} { return g.ready }

// Run listens and serves until ctx ends, closes all sessions and returns when
// everything it started has ended. It may be called once.
func (g *Gateway) Run(ctx context.Context) error {
	g.log = logr.FromContextOrDiscard(ctx).WithName("gateway")
	g.started = time.Now()
	l := g.opts.Listener
	if l == nil {
		var err error
		if l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", g.opts.Addr); err != nil {
			return fmt.Errorf("listen for agents: %w", err)
		}
	}
	at := l.Addr()
	g.bound.Store(&at)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Sessions outlive ctx while they are drained.
	live, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()

	front := g.front(live)
	var served error
	g.running.Go(func() {
		defer cancel()
		if g.opts.Plain {
			served = front.Serve(g.admission.listen(l))
		} else {
			served = front.ServeTLS(g.admission.listen(l), "", "")
		}
	})
	var serving sync.WaitGroup
	serving.Go(func() { serveStreams(g.inner, g.streams) })
	serving.Go(func() { serveStreams(g.join, g.joining) })
	g.running.Go(func() { g.sweep(ctx) })
	g.running.Go(func() { g.watchReachable(ctx) })
	close(g.ready)
	g.log.Info("listening for agents", "address", at.String(), "plain", g.opts.Plain)

	<-ctx.Done()
	// Nobody new comes in; the handlers end with their connections.
	err := front.Close()
	g.drain()
	cut()
	// Whoever is left is cut off.
	g.ending.Lock()
	g.ended = true
	g.ending.Unlock()
	g.sessions.closeAll()
	g.running.Wait()
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), tunnel.HandshakeTimeout)
	defer stop()
	err = errors.Join(err, g.inner.Shutdown(end), g.join.Shutdown(end))
	serving.Wait()
	if served != nil && !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve agents: %w", served))
	}
	return err
}

// front is the server outside the websocket.
func (g *Gateway) front(ctx context.Context) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+tunnel.JoinPath, func(w http.ResponseWriter, r *http.Request) { g.upgrade(ctx, w, r, g.serveJoin) })
	mux.HandleFunc("GET "+tunnel.SessionPath, func(w http.ResponseWriter, r *http.Request) { g.upgrade(ctx, w, r, g.serveSession) })
	s := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: tunnel.HeaderTimeout,
		WriteTimeout:      tunnel.HandshakeTimeout,
		MaxHeaderBytes:    tunnel.MaxHeader,
		ErrorLog:          log.New(io.Discard, "", 0), // anybody can cause these lines; they are counted
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){},
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, SessionTicketsDisabled: true, NextProtos: []string{"http/1.1"}, Time: g.opts.Now,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return g.outer.get() },
		},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if t, ok := c.(*tls.Conn); ok {
				c = t.NetConn()
			}
			return context.WithValue(ctx, admittedKey{}, c)
		},
	}
	s.SetKeepAlivesEnabled(false)
	return s
}

// leaf is a serving certificate that is made anew half-way through its life.
type leaf struct {
	issuer tunnel.Issuer
	names  []string
	now    func() time.Time

	mu   sync.Mutex
	cert *tls.Certificate
}

func (l *leaf) get() (*tls.Certificate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.cert == nil || l.cert.Leaf.NotAfter.Sub(now) < tunnel.CertificateTTL/2 {
		cert, err := l.issuer.Server(l.names, now)
		if err != nil {
			return nil, fmt.Errorf("serving certificate: %w", err)
		}
		l.cert = cert
	}
	return l.cert, nil
}
