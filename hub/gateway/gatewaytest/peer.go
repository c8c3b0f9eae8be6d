// SPDX-License-Identifier: Apache-2.0

package gatewaytest

import (
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
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"kumodo.io/convoy/pkg/tunnel"
)

// Peer is an agent without manners: it does what a test says, step by step.
type Peer struct {
	Token  tunnel.Token
	Bound  ed25519.PrivateKey
	Client *ecdsa.PrivateKey
	Cert   *tls.Certificate // after Join
	CA     *x509.Certificate

	// Hello that Session says.
	Hello tunnel.Hello

	// Connect makes the connection underneath. Default: TCP.
	Connect func(ctx context.Context, network, addr string) (net.Conn, error)
	// Header of the websocket's request.
	Header http.Header
	Now    func() time.Time
}

// NewPeer makes keys for a token.
func (h *Hub) NewPeer(token tunnel.Token) (*Peer, error) {
	_, bound, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make bound key: %w", err)
	}
	client, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make client key: %w", err)
	}
	return &Peer{Token: token, Bound: bound, Client: client, CA: h.CA, Connect: (&net.Dialer{}).DialContext, Now: h.Now,
		Hello: tunnel.Hello{AgentVersion: "test", KubernetesVersion: "v1.37.2", TargetUID: "target"}}, nil
}

// Websocket dials and returns the connection in which TLS is to start.
func (p *Peer) Websocket(ctx context.Context, path string) (*tunnel.Conn, error) {
	transport := &http.Transport{
		DialContext: p.Connect, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // what is outside is not what a test is about
	}
	ws, resp, err := websocket.Dial(ctx, p.Token.Gateway+path, &websocket.DialOptions{ //nolint:bodyclose // documented as not needed
		HTTPClient: &http.Client{Transport: transport}, Subprotocols: []string{tunnel.Subprotocol}, HTTPHeader: p.Header,
	})
	if err != nil {
		if resp != nil {
			return nil, errors.Join(&tunnel.StatusError{Code: resp.StatusCode}, err)
		}
		return nil, fmt.Errorf("dial: %w", err)
	}
	return tunnel.NewConn(ws, &net.TCPAddr{}, &net.TCPAddr{}) // says what failed
}

func (p *Peer) config(cert *tls.Certificate) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(p.CA)
	return tunnel.HubTrust{Hub: p.Token.Hub, CAs: pool}.Config(cert, p.Now)
}

// Open dials an endpoint: with a certificate that of sessions, else that of joins.
func (p *Peer) Open(ctx context.Context, cert *tls.Certificate) (*tunnel.Session, error) {
	path := tunnel.JoinPath
	if cert != nil {
		path = tunnel.SessionPath
	}
	conn, err := p.Websocket(ctx, path)
	if err != nil {
		return nil, err
	}
	return tunnel.ClientSession(ctx, conn, p.config(cert), tunnel.MuxOptions{}) // says what failed
}

// Raw is the inside of the TLS of an endpoint, where the frames of the multiplexer
// go, for whoever does not keep to them.
func (p *Peer) Raw(ctx context.Context, cert *tls.Certificate) (*tls.Conn, error) {
	path := tunnel.JoinPath
	if cert != nil {
		path = tunnel.SessionPath
	}
	conn, err := p.Websocket(ctx, path)
	if err != nil {
		return nil, err
	}
	inner := tls.Client(conn, p.config(cert))
	if err := inner.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("handshake: %w", err), conn.Close())
	}
	return inner, nil
}

// Request makes a join request under a fresh nonce, to be changed, signed with
// Sign and posted with Post.
func (p *Peer) Request(ctx context.Context, c *tunnel.Client) (tunnel.JoinRequest, error) {
	var nonce tunnel.NonceAnswer
	if err := c.Call(ctx, http.MethodGet, tunnel.JoinPath, nil, &nonce); err != nil {
		return tunnel.JoinRequest{}, err // says what failed
	}
	public, err := x509.MarshalPKIXPublicKey(p.Client.Public())
	if err != nil {
		return tunnel.JoinRequest{}, fmt.Errorf("encode client key: %w", err)
	}
	return tunnel.JoinRequest{Nonce: nonce.Nonce, ClusterUID: p.Token.ClusterUID, ClientKey: public}, nil
}

// Sign fills in the proofs; with is nil to recover.
func (p *Peer) Sign(r *tunnel.JoinRequest, with ed25519.PrivateKey) {
	tunnel.SignJoin(r, p.Token.Hub, p.Token.CAPin, with, p.Bound)
}

// Join gets a certificate with the token, or with recovery with the bound key.
func (p *Peer) Join(ctx context.Context, recovery bool) (err error) {
	s, err := p.Open(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	c := tunnel.NewClient(s)
	r, err := p.Request(ctx, c)
	if err != nil {
		return err
	}
	if recovery {
		p.Sign(&r, nil)
	} else {
		p.Sign(&r, p.Token.Key())
	}
	return p.Post(ctx, c, r)
}

// Post sends a join request and keeps the certificate.
func (p *Peer) Post(ctx context.Context, c *tunnel.Client, r tunnel.JoinRequest) error {
	var answer tunnel.CertificateAnswer
	if err := c.Call(ctx, http.MethodPost, tunnel.JoinPath, r, &answer); err != nil {
		return err // says what failed
	}
	return p.Keep(answer)
}

// Keep takes a certificate over.
func (p *Peer) Keep(answer tunnel.CertificateAnswer) error {
	key, err := x509.MarshalPKCS8PrivateKey(p.Client)
	if err != nil {
		return fmt.Errorf("encode client key: %w", err)
	}
	cert, err := tls.X509KeyPair(answer.Certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	p.Cert = &cert
	return nil
}

// Renew gets the next certificate over a session, and keeps it.
func (p *Peer) Renew(ctx context.Context, c *tunnel.Client) error {
	public, err := x509.MarshalPKIXPublicKey(p.Client.Public())
	if err != nil {
		return fmt.Errorf("encode client key: %w", err)
	}
	var answer tunnel.CertificateAnswer
	if err := c.Call(ctx, http.MethodPost, "/v1/renew", tunnel.RenewRequest{ClientKey: public}, &answer); err != nil {
		return err // says what failed
	}
	return p.Keep(answer)
}

// Clone is another agent with the same identity.
func (p *Peer) Clone() *Peer { other := *p; return &other }

// Session is an open session that has said hello.
func (p *Peer) Session(ctx context.Context) (*tunnel.Session, *tunnel.Client, error) {
	s, err := p.Open(ctx, p.Cert)
	if err != nil {
		return nil, nil, err
	}
	c := tunnel.NewClient(s)
	if err := c.Call(ctx, http.MethodPost, "/v1/hello", p.Hello, nil); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, c, nil
}

// Pipes is a listener in memory, for tests under a fake clock.
type Pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

// NewPipes makes one.
func NewPipes() *Pipes { return &Pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

// Accept implements net.Listener.
func (l *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Dial connects to it, whatever the address.
func (l *Pipes) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, fmt.Errorf("dial: %w", ctx.Err())
	}
}

// Close implements net.Listener.
func (l *Pipes) Close() error {
	select {
	case <-l.done:
	default:
		close(l.done)
	}
	return nil
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "hub.example:443" }

// Addr implements net.Listener.
func (l *Pipes) Addr() net.Addr { return pipeAddr{} }
