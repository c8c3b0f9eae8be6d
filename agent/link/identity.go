// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"

	"kumodo.io/convoy/pkg/tunnel"
)

// ensureIdentity returns an identity to dial with. It joins when there is none or a
// token has come that is to be taken, see takes, and recovers with the bound key
// when the certificate has certainly run out. Where only the clock here says so,
// the hub, whose clock counts, is asked.
func (l *Link) ensureIdentity(ctx context.Context) (*Identity, error) {
	id := l.currentIdentity()
	token, err := l.token(ctx)
	if err != nil && !id.Joined() {
		return nil, err
	}
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "join token could not be read; going on with the identity there is")
	}
	l.note(ctx, id, token)
	if !id.Joined() && token == nil {
		return nil, ErrNoToken
	}
	if l.takes(id, token) {
		next, err := l.joinWith(ctx, id, token)
		if err == nil {
			return next, nil
		}
		problem, said := refused(err)
		if !said || !id.Joined() {
			return nil, err
		}
		// A token that was used up or has expired does not end an identity.
		logr.FromContextOrDiscard(ctx).Info("join token refused; going on with the identity there is", "reason", problem.Reason)
	}
	cert, err := id.certificate()
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	if l.hubSince().Before(cert.Leaf.NotAfter) {
		return id, nil
	}
	return l.recover(ctx, id)
}

// joinWith joins with a token. The keys are saved before they are shown, so that
// a join whose answer was lost can be repeated with the same ones.
func (l *Link) joinWith(ctx context.Context, old *Identity, token *tunnel.Token) (*Identity, error) {
	if old.Joined() && !isFor(token, old) {
		l.mu.Lock()
		l.tookTurn = true
		l.mu.Unlock()
	}
	next := old
	if old.Joined() {
		next = old.Next
	}
	if next == nil || !bytes.Equal(next.JoinKey, token.PublicKey()) {
		var err error
		if next, err = newIdentity(token); err != nil {
			return nil, err
		}
		save := next
		if old.Joined() {
			with := *old
			with.Next = next
			save = &with
		}
		if err := l.opts.Identity.Save(ctx, save); err != nil {
			return nil, fmt.Errorf("save keys before the join: %w", err)
		}
		l.setIdentity(save)
	}
	trust := tunnel.HubTrust{Hub: next.Hub, Pin: next.CAPin}
	joined, err := l.certify(ctx, next, trust, token.Key())
	if err != nil {
		if _, said := refused(err); said {
			l.mu.Lock()
			l.tried = token.PublicKey()
			l.mu.Unlock()
		}
		return nil, fmt.Errorf("join: %w", err)
	}
	l.note(ctx, joined, token)
	logr.FromContextOrDiscard(ctx).Info("joined", "hub", joined.Hub, "clusterUID", joined.ClusterUID)
	return joined, nil
}

// recover asks for a certificate with the bound key alone.
func (l *Link) recover(ctx context.Context, id *Identity) (*Identity, error) {
	trust, err := id.trust()
	if err != nil {
		return nil, err
	}
	next, err := l.certify(ctx, id, trust, nil)
	if err != nil {
		return nil, fmt.Errorf("recover: %w", err)
	}
	logr.FromContextOrDiscard(ctx).Info("recovered with the bound key, since the certificate had run out")
	return next, nil
}

// certify has the hub certify the keys of id, and saves what comes of it.
func (l *Link) certify(ctx context.Context, id *Identity, trust tunnel.HubTrust, token ed25519.PrivateKey) (*Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	key, err := x509.ParsePKCS8PrivateKey(id.ClientKey)
	if err != nil {
		return nil, fmt.Errorf("client key: %w", err)
	}
	signer, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("client key: %w", tunnel.ErrKey)
	}
	public, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		return nil, fmt.Errorf("client key: %w", err)
	}
	conn, err := l.dial(ctx, l.gateway(id), tunnel.JoinPath, trust)
	if err != nil {
		return nil, l.clockError(err)
	}
	s, err := tunnel.ClientSession(ctx, conn, l.verifying(trust, nil, new(time.Time)), tunnel.MuxOptions{})
	if err != nil {
		return nil, l.clockError(err) // says what failed
	}
	answer, err := askCertificate(ctx, tunnel.NewClient(s), id, id.pin(s.Peer), public, token)
	if err := errors.Join(err, s.Close()); err != nil {
		return nil, err
	}
	return l.adopt(ctx, id, answer, s.Peer)
}

func askCertificate(ctx context.Context, client *tunnel.Client, id *Identity, pin string, public []byte, token ed25519.PrivateKey) (*tunnel.CertificateAnswer, error) {
	var nonce tunnel.NonceAnswer
	if err := client.Call(ctx, http.MethodGet, tunnel.JoinPath, nil, &nonce); err != nil {
		return nil, err // says what failed
	}
	req := tunnel.JoinRequest{Nonce: nonce.Nonce, ClusterUID: id.ClusterUID, ClientKey: public}
	tunnel.SignJoin(&req, id.Hub, pin, token, ed25519.NewKeyFromSeed(id.BoundKey))
	var answer tunnel.CertificateAnswer
	if err := client.Call(ctx, http.MethodPost, tunnel.JoinPath, req, &answer); err != nil {
		return nil, err // says what failed
	}
	return &answer, nil
}

// adopt checks a certificate that the hub gave over a link where it presented the
// certificate peer, and saves the identity with it, and with the keys named there.
func (l *Link) adopt(ctx context.Context, id *Identity, answer *tunnel.CertificateAnswer, peer *x509.Certificate) (*Identity, error) {
	with, _, err := id.withKeys(answer.OrderKeys, answer.HubCA, peer)
	if err != nil {
		return nil, err // says what it is
	}
	next := *with
	next.Certificate, next.Next = answer.Certificate, nil
	if len(next.OrderKeys) == 0 {
		return nil, fmt.Errorf("hub named no order key: %w", tunnel.ErrKey)
	}
	trust, err := next.trust()
	if err != nil {
		return nil, err
	}
	cert, err := next.certificate()
	if err != nil {
		return nil, fmt.Errorf("certificate from the hub: %w", err)
	}
	_, err = cert.Leaf.Verify(x509.VerifyOptions{
		Roots: trust.CAs, CurrentTime: cert.Leaf.NotBefore.Add(time.Second), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, fmt.Errorf("certificate from the hub: %w", err)
	}
	cluster, _, err := tunnel.PeerIdentity(cert.Leaf, next.Hub)
	if err != nil || cluster.UID != next.ClusterUID {
		return nil, fmt.Errorf("certificate from the hub names another cluster: %w", errors.Join(err, tunnel.ErrIdentity))
	}
	// The hub's clock made it: it is later than that.
	if at := cert.Leaf.NotBefore.Add(tunnel.CertificateBackdate); next.HubTime.Before(at) && l.believes(at) {
		next.HubTime = at
	}
	if err := l.opts.Identity.Save(ctx, &next); err != nil {
		return nil, fmt.Errorf("save identity: %w", err)
	}
	l.setIdentity(&next)
	return &next, nil
}

func (l *Link) gateway(id *Identity) string {
	if l.opts.GatewayURL != "" {
		return l.opts.GatewayURL
	}
	return id.GatewayURL
}

func newIdentity(token *tunnel.Token) (*Identity, error) {
	_, bound, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make bound key: %w", err)
	}
	client, _, err := newClientKey()
	if err != nil {
		return nil, err
	}
	return &Identity{
		Hub: token.Hub, ClusterUID: token.ClusterUID, GatewayURL: token.Gateway, CAPin: token.CAPin, JoinKey: token.PublicKey(),
		BoundKey: bound.Seed(), ClientKey: client,
	}, nil
}

// newClientKey returns a P-256 key, PKCS #8, and its public half, PKIX.
func newClientKey() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make client key: %w", err)
	}
	if private, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
		return nil, nil, fmt.Errorf("encode client key: %w", err)
	}
	if public, err = x509.MarshalPKIXPublicKey(key.Public()); err != nil {
		return nil, nil, fmt.Errorf("encode client key: %w", err)
	}
	return private, public, nil
}

// certificate with its key; fails unless both belong together.
func (i *Identity) certificate() (*tls.Certificate, error) {
	if !i.Joined() {
		return nil, ErrNoIdentity
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: i.ClientKey})
	cert, err := tls.X509KeyPair(i.Certificate, key)
	if err != nil {
		return nil, fmt.Errorf("certificate and key: %w", err)
	}
	return &cert, nil
}

func parseCertificates(raw []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, errors.New("no certificate in it")
	}
	return certs, nil
}
