// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// Paths of the two endpoints, and the application protocols of the TLS inside
// them, so that one can never be taken for the other.
const (
	JoinPath    = "/v1/join"
	SessionPath = "/v1/session"

	protoJoin    = "convoy-join.v1"
	protoSession = "convoy-session.v1"
)

// Session is one link: a websocket, TLS inside it, a multiplexer inside that.
type Session struct {
	Mux
	Conn *Conn
	// Peer is the verified certificate of the other side, nil on a join endpoint.
	Peer *x509.Certificate
}

// ServerSession makes the hub's side of a link. ctx bounds the handshake only.
func ServerSession(ctx context.Context, conn *Conn, cfg *tls.Config, o MuxOptions) (*Session, error) {
	return start(ctx, tls.Server(conn, cfg), conn, false, o)
}

// ClientSession makes the agent's side of a link. ctx bounds the handshake only.
func ClientSession(ctx context.Context, conn *Conn, cfg *tls.Config, o MuxOptions) (*Session, error) {
	return start(ctx, tls.Client(conn, cfg), conn, true, o)
}

func start(ctx context.Context, inner *tls.Conn, conn *Conn, client bool, o MuxOptions) (*Session, error) {
	if err := inner.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("TLS inside the websocket: %w", err), conn.Close())
	}
	s := &Session{Conn: conn}
	if peers := inner.ConnectionState().PeerCertificates; len(peers) > 0 {
		s.Peer = peers[0]
	}
	m, err := NewMux(inner, conn, conn, client, o)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	s.Mux = m
	return s, nil
}

func base(now func() time.Time) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// A resumed session would skip the verification of the peer.
		SessionTicketsDisabled: true,
		// One record a write: else the first frames are cut into many messages.
		DynamicRecordSizingDisabled: true,
		// The buffers of a handshake stay with the connection. Those of a hybrid key
		// exchange are some 5 KiB for each agent; that one is had outside.
		CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256},
		Time:             now,
	}
}

// JoinServerConfig is for the join endpoint: it asks for no certificate.
func JoinServerConfig(cert func() (*tls.Certificate, error), now func() time.Time) *tls.Config {
	cfg := base(now)
	cfg.NextProtos = []string{protoJoin}
	cfg.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert() }
	return cfg
}

// SessionServerConfig is for the session endpoint: mutual, without exception.
func SessionServerConfig(hub string, cas *x509.CertPool, cert func() (*tls.Certificate, error), now func() time.Time) (*tls.Config, error) {
	if cas == nil || hub == "" {
		return nil, fmt.Errorf("%w: the session endpoint needs a hub id and a client CA", ErrHub)
	}
	cfg := base(now)
	cfg.NextProtos = []string{protoSession}
	cfg.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert() }
	cfg.ClientAuth = tls.RequireAndVerifyClientCert
	cfg.ClientCAs = cas
	cfg.VerifyConnection = func(cs tls.ConnectionState) error {
		if len(cs.PeerCertificates) == 0 || len(cs.VerifiedChains) == 0 || cs.NegotiatedProtocol != protoSession {
			return fmt.Errorf("%w: no verified certificate", ErrIdentity)
		}
		_, _, err := PeerIdentity(cs.PeerCertificates[0], hub)
		return err
	}
	return cfg, nil
}

// HubTrust is how an agent knows its hub: by CA certificates, or before it has
// any by the pin of one that the hub presents.
type HubTrust struct {
	Hub string
	CAs *x509.CertPool
	Pin string // used when CAs is nil
}

// Config is the agent's side. With a certificate it is for the session endpoint,
// without one for the join endpoint. now is the agent's idea of the time.
func (t HubTrust) Config(cert *tls.Certificate, now func() time.Time) *tls.Config {
	cfg := base(now)
	proto := protoJoin
	if cert != nil {
		proto = protoSession
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	cfg.NextProtos = []string{proto}
	// No server name: it would go in the clear. Verification is done below: system
	// roots play no part, and the CA may be known by its pin only.
	cfg.InsecureSkipVerify = true // VerifyConnection does it
	cfg.VerifyConnection = func(cs tls.ConnectionState) error {
		if cs.NegotiatedProtocol != proto {
			return fmt.Errorf("%w: application protocol %q", ErrHub, cs.NegotiatedProtocol)
		}
		return t.Verify(cs.PeerCertificates, HubServerName(t.Hub), now())
	}
	return cfg
}

// Verify checks a chain that a server presented under name.
func (t HubTrust) Verify(chain []*x509.Certificate, name string, now time.Time) error {
	if len(chain) == 0 {
		return fmt.Errorf("%w: no certificate", ErrHub)
	}
	roots := t.CAs
	if roots == nil {
		roots = x509.NewCertPool()
		for _, cert := range chain[1:] {
			if cert.IsCA && t.Pin != "" && CAPin(cert) == t.Pin {
				roots.AddCert(cert)
			}
		}
	}
	intermediates := x509.NewCertPool()
	for _, cert := range chain[1:] {
		intermediates.AddCert(cert)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediates, DNSName: name, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrHub, err)
	}
	return nil
}
