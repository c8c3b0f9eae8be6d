// SPDX-License-Identifier: Apache-2.0

// Package frontproxy keeps requests away from the API server until it knows whom to
// believe who a request is from: the host's front proxy. Before that everybody would be
// nobody, and be forbidden what is theirs. It stands beside the flow source -> render ->
// store -> deliver -> apply -> observe -> report.
package frontproxy

import (
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// settle is how long, after the authority is known, a connection may be one that was
// made before: its client was not told then which certificate is wanted. Each is closed at its
// first request.
const settle = time.Minute

// Name of the check of readiness.
const Name = "front-proxy-authority"

// ErrUnknown: the front proxy's authority is not known yet.
var ErrUnknown = errors.New("the authority of the host's front proxy is not known yet: it is read from " +
	"ConfigMap extension-apiserver-authentication in kube-system, key requestheader-client-ca-file")

// Authority is what certificates of the front proxy are verified with.
type Authority interface {
	// VerifyOptions are not ok as long as the authority is not known.
	VerifyOptions() (options x509.VerifyOptions, ok bool)
}

// Headers are names of the headers in which a front proxy says who asks.
type Headers interface {
	Value() []string
}

// Gate lets requests through when the authority is known.
type Gate struct {
	authority Authority
	users     Headers
	clock     clock.PassiveClock

	mu sync.Mutex
	// since is when the authority was known first; guarded by mu.
	since time.Time
}

// New makes a Gate. users are headers with the name of the user.
func New(authority Authority, users Headers, clock clock.PassiveClock) *Gate {
	return &Gate{authority: authority, users: users, clock: clock}
}

// Name implements healthz.HealthChecker.
func (g *Gate) Name() string { return Name }

// Check implements healthz.HealthChecker.
func (g *Gate) Check(*http.Request) error {
	_, err := g.known()
	return err
}

// known gives the time for which the authority has been known.
func (g *Gate) known() (time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.since.IsZero() {
		if _, ok := g.authority.VerifyOptions(); !ok || len(g.users.Value()) == 0 {
			return 0, ErrUnknown
		}
		g.since = g.clock.Now()
	}
	return g.clock.Since(g.since), nil
}

// Wrap answers 503 in place of next until the authority is known, and ends the connection:
// in its handshake the client was not asked for the certificate that proves it. The same
// holds for a request that comes soon after over such a connection. Checks of health are
// let through.
func (g *Gate) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if probe(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		age, err := g.known()
		if err == nil && age < settle && g.unproven(r) {
			err = ErrUnknown
		}
		if err != nil {
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "1")
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// unproven: the request says who asks, as a front proxy does, and has nothing that proves
// it.
func (g *Gate) unproven(r *http.Request) bool {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 || r.Header.Get("Authorization") != "" {
		return false
	}
	for _, name := range g.users.Value() {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}

func probe(path string) bool {
	for _, at := range []string{"/healthz", "/livez", "/readyz"} {
		if path == at || strings.HasPrefix(path, at+"/") {
			return true
		}
	}
	return false
}
