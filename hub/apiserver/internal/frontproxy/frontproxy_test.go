// SPDX-License-Identifier: Apache-2.0

package frontproxy_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"kumodo.io/convoy/hub/apiserver/internal/frontproxy"
)

type authority struct{ known atomic.Bool }

func (a *authority) VerifyOptions() (x509.VerifyOptions, bool) {
	return x509.VerifyOptions{}, a.known.Load()
}

type headers []string

func (h headers) Value() []string { return h }

func TestWhoeverAsksBeforeTheFrontProxyIsKnownIsToldToComeBack(t *testing.T) {
	proven := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}
	for _, c := range []struct {
		name    string
		known   bool
		after   time.Duration
		path    string
		headers map[string]string
		tls     *tls.ConnectionState
		want    int
	}{
		{name: "the front proxy, before", path: "/apis", headers: map[string]string{"X-Remote-User": "ann"}, tls: proven, want: 503},
		{name: "a token, before", path: "/apis", headers: map[string]string{"Authorization": "Bearer x"}, want: 503},
		{name: "nobody, before", path: "/apis", want: 503},
		{name: "what only begins like a check of health, before", path: "/readyzes", want: 503},
		{name: "a check of health, before", path: "/readyz/etcd", want: 200},
		{name: "the front proxy, once it is known", known: true, path: "/apis", headers: map[string]string{"X-Remote-User": "ann"}, tls: proven, want: 200},
		{name: "the front proxy over a connection that was made before", known: true, path: "/apis", headers: map[string]string{"X-Remote-User": "ann"}, want: 503},
		{name: "a token that comes with a name", known: true, path: "/apis", headers: map[string]string{"X-Remote-User": "ann", "Authorization": "Bearer x"}, want: 200},
		{name: "nobody, once it is known", known: true, path: "/apis", want: 200},
		{name: "somebody who only says who they are, later", known: true, after: time.Hour, path: "/apis", headers: map[string]string{"X-Remote-User": "ann"}, want: 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, clock := &authority{}, testingclock.NewFakePassiveClock(time.Unix(1e9, 0))
			a.known.Store(c.known)
			gate := frontproxy.New(a, headers{"X-Remote-User"}, clock)
			if err := gate.Check(nil); errors.Is(err, frontproxy.ErrUnknown) == c.known {
				t.Errorf("ready: %v", err)
			}
			clock.SetTime(time.Unix(1e9, 0).Add(c.after))
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, http.NoBody)
			r.TLS = c.tls
			for name, value := range c.headers {
				r.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			gate.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })).ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("got %d, want %d", w.Code, c.want)
			}
			if closed := w.Header().Get("Connection") == "close"; closed != (c.want == 503) {
				t.Errorf("the connection ends: %v", closed)
			}
		})
	}
}

func TestNamesOfHeadersHaveToBeKnownToo(t *testing.T) {
	a := &authority{}
	a.known.Store(true)
	gate := frontproxy.New(a, headers{}, testingclock.NewFakePassiveClock(time.Unix(1e9, 0)))
	if err := gate.Check(nil); !errors.Is(err, frontproxy.ErrUnknown) {
		t.Errorf("got %v, want that it is not known", err)
	}
}
