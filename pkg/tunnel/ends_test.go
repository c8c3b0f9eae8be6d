// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coder/websocket"

	"kumodo.io/convoy/pkg/tunnel"
)

const hubID = "0123456789abcdef"

func newIssuer(t testing.TB) tunnel.Issuer {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tunnel.Issuer{Hub: hubID, CA: ca, Signer: k}
}

func pool(certs ...*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	for _, c := range certs {
		p.AddCert(c)
	}
	return p
}

var cluster = tunnel.ClusterID{Namespace: "fleet", Name: "edge-1", UID: "uid-1"}

// agentCert is a certificate as a join gives it.
func agentCert(t testing.TB, issuer tunnel.Issuer, now time.Time) *tls.Certificate {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(k.Public())
	if err != nil {
		t.Fatal(err)
	}
	prepared, err := issuer.Prepare(cluster, "bound", public, now)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := issuer.Sign(prepared)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(raw, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	if err != nil {
		t.Fatal(err)
	}
	return &cert
}

// conns is the two ends of a websocket over loopback.
func conns(t testing.TB, subprotocol string) (client *websocket.Conn, server *websocket.Conn) {
	t.Helper()
	accepted := make(chan *websocket.Conn, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{tunnel.Subprotocol}})
		if err != nil {
			t.Error(err)
		}
		accepted <- ws
	}))
	t.Cleanup(srv.Close)
	transport := &http.Transport{DisableKeepAlives: true}
	ws, _, err := websocket.Dial(t.Context(), srv.URL, &websocket.DialOptions{ //nolint:bodyclose // documented as not needed
		Subprotocols: []string{subprotocol}, HTTPClient: &http.Client{Transport: transport},
	})
	if err != nil {
		t.Fatal(err)
	}
	return ws, <-accepted
}

func wrap(t testing.TB, ws *websocket.Conn) *tunnel.Conn {
	t.Helper()
	c, err := tunnel.NewConn(ws, &net.TCPAddr{}, &net.TCPAddr{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// link is both ends with TLS inside; errors come from the handshakes.
func link(t testing.TB, clientTLS, serverTLS *tls.Config) (client, server *tunnel.Session, err error) {
	t.Helper()
	a, b := conns(t, tunnel.Subprotocol)
	ca, cb := wrap(t, a), wrap(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		var err error
		server, err = tunnel.ServerSession(ctx, cb, serverTLS, tunnel.MuxOptions{Owner: "owner"})
		served <- err
	}()
	client, err = tunnel.ClientSession(ctx, ca, clientTLS, tunnel.MuxOptions{})
	err = errors.Join(err, <-served)
	t.Cleanup(func() {
		for _, s := range []*tunnel.Session{client, server} {
			if s == nil {
				continue
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return client, server, err
}

func hubCert(issuer tunnel.Issuer, names ...string) func() (*tls.Certificate, error) {
	return func() (*tls.Certificate, error) { return issuer.Server(names, time.Now()) }
}

func sessionConfig(t testing.TB, issuer tunnel.Issuer) *tls.Config {
	t.Helper()
	cfg, err := tunnel.SessionServerConfig(hubID, pool(issuer.CA), hubCert(issuer, tunnel.HubServerName(hubID)), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
