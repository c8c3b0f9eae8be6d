// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"testing"
	"time"

	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestWhileTheHubCAIsRotatedBothAreAcceptedAndTold(t *testing.T) {
	next, nextKey, err := gatewaytest.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var old *x509.Certificate
	r := start(t, func(h *gatewaytest.Hub, o *gateway.Options) {
		// Rotated: agents are certified by the new CA, and the gateway shows what all know.
		old = h.CA
		o.ServerCA, o.ServerSigner = h.CA, h.CASigner
		o.CA, o.CASigner = next, nextKey
		o.HubCAs = func() []*x509.Certificate { return []*x509.Certificate{next, old} }
		o.OrderKeys = func() [][]byte { return [][]byte{h.OrderPublic(), make([]byte, 32)} }
	})
	id, p := r.cluster(t, "edge")
	if err := p.Join(r.ctx, false); err != nil {
		t.Fatal(err)
	}
	if err := p.Cert.Leaf.CheckSignatureFrom(next); err != nil {
		t.Errorf("an agent that joins now is not certified by the new CA: %v", err)
	}
	// One of before the rotation.
	before := p.Clone()
	issuer := tunnel.Issuer{Hub: r.ID, CA: old, Signer: r.CASigner}
	public, err := x509.MarshalPKIXPublicKey(p.Client.Public())
	if err != nil {
		t.Fatal(err)
	}
	prepared, err := issuer.Prepare(id, tunnel.KeyID(p.Bound.Public().(ed25519.PublicKey)), public, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	text, err := issuer.Sign(prepared)
	if err != nil {
		t.Fatal(err)
	}
	if err := before.Keep(tunnel.CertificateAnswer{Certificate: text}); err != nil {
		t.Fatal(err)
	}
	s, err := before.Open(r.ctx, before.Cert)
	if err != nil {
		t.Fatalf("a certificate of the old CA: %v", err)
	}
	defer s.Close()
	var answer tunnel.HelloAnswer
	if err := tunnel.NewClient(s).Call(r.ctx, http.MethodPost, "/v1/hello", before.Hello, &answer); err != nil {
		t.Fatal(err)
	}
	told := 0
	for rest := answer.HubCA; ; told++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
	}
	if told != 2 || len(answer.OrderKeys) != 2 {
		t.Errorf("told of %d CAs and %d order keys, want 2 of each", told, len(answer.OrderKeys))
	}
	r.open(t, p)
}
