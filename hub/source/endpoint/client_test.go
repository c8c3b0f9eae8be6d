// SPDX-License-Identifier: Apache-2.0

package endpoint_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"kumodo.io/convoy/hub/source/address"
	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
)

// clientCertificate makes one, in PEM.
func clientCertificate(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
}

// asking is a server that asks for a client certificate and counts those it is shown.
func asking(t *testing.T, handler http.HandlerFunc) (server *httptest.Server, shown *atomic.Int64) {
	t.Helper()
	shown = &atomic.Int64{}
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown.Add(int64(len(r.TLS.PeerCertificates)))
		handler(w, r)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, shown
}

func TestAClientCertificateIsShownToItsOwnHostOnly(t *testing.T) {
	t.Parallel()
	other, shownToOther := asking(t, func(http.ResponseWriter, *http.Request) {})
	own, shownToOwn := asking(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusFound)
	})
	remote := endpoint.Remote{URL: own.URL, Policy: address.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}
	remote.ClientCert, remote.ClientKey = clientCertificate(t)
	for _, server := range []*httptest.Server{own, other} {
		remote.CA = append(remote.CA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})...)
	}
	client, err := remote.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	response, err := client.Get(t.Context(), client.URL(), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	if shownToOwn.Load() != 1 || shownToOther.Load() != 0 {
		t.Errorf("shown %d times to its own host and %d times to another, want 1 and 0", shownToOwn.Load(), shownToOther.Load())
	}
}

func TestWhatCannotBeUsedToConnectIsSaid(t *testing.T) {
	t.Parallel()
	certificate, _ := clientCertificate(t)
	_, key := clientCertificate(t)
	for name, remote := range map[string]endpoint.Remote{
		"a key that is not the certificate's": {URL: "https://host.test", Auth: endpoint.Auth{ClientCert: certificate, ClientKey: key}},
		"a certificate without a key":         {URL: "https://host.test", Auth: endpoint.Auth{ClientCert: certificate}},
		"a CA that is none":                   {URL: "https://host.test", CA: []byte("x")},
		"a URL with a query":                  {URL: "https://host.test/?a=b"},
		"a URL without a host":                {URL: "https:///a"},
		"a host that looks like a flag":       {URL: "https://-flag/a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := remote.Connect(); fault.ClassOf(err) != fault.ClassInvalid {
				t.Errorf("got %v of class %s", err, fault.ClassOf(err))
			}
		})
	}
}
