// SPDX-License-Identifier: Apache-2.0

package keyset

import (
	"crypto/x509"
	"net"
	"testing"
	"time"
)

func newTestCA(t *testing.T, name string) CA {
	t.Helper()
	data, err := Create(name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cas, err := CAs(data)
	if err != nil {
		t.Fatal(err)
	}
	return cas[0]
}

func TestCertificatesAreBelievedByWhoeverBelievesTheirCA(t *testing.T) {
	now := time.Now()
	serving, hub := newTestCA(t, ServingCA), newTestCA(t, HubCA)
	server, _, err := serving.ServerCertificate([]string{"convoy-apiserver.convoy-system.svc"}, []net.IP{net.IPv4(127, 0, 0, 1)}, now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	client, _, err := hub.ClientCertificate("someone", []string{"convoy:admin"}, now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		ca    CA
		leaf  []byte
		usage x509.ExtKeyUsage
		host  string
	}{
		"server": {ca: serving, leaf: server, usage: x509.ExtKeyUsageServerAuth, host: "convoy-apiserver.convoy-system.svc"},
		"client": {ca: hub, leaf: client, usage: x509.ExtKeyUsageClientAuth},
	} {
		t.Run(name, func(t *testing.T) {
			roots := x509.NewCertPool()
			if !roots.AppendCertsFromPEM(c.ca.PEM) {
				t.Fatal("the CA's PEM holds no certificate")
			}
			leaf, err := parseCertificate(c.leaf)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: c.host, KeyUsages: []x509.ExtKeyUsage{c.usage}}); err != nil {
				t.Error(err)
			}
			if leaf.IsCA {
				t.Error("a leaf must not be a CA")
			}
		})
	}
}
