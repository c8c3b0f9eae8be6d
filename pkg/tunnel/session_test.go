// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestOnlyTheRightEndsMakeASession(t *testing.T) {
	t.Parallel()
	issuer, stranger := newIssuer(t), newIssuer(t)
	cert := agentCert(t, issuer, time.Now())
	trust := tunnel.HubTrust{Hub: hubID, CAs: pool(issuer.CA)}
	join := tunnel.JoinServerConfig(hubCert(issuer, tunnel.HubServerName(hubID)), time.Now)
	pinned := tunnel.HubTrust{Hub: hubID, Pin: tunnel.CAPin(issuer.CA)}
	session := sessionConfig(t, issuer)
	noName := session.Clone()
	noName.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return hubCert(issuer, "hub.example")() }
	otherHub := issuer
	otherHub.Hub = "another"
	expired := func() time.Time { return time.Now().Add(48 * time.Hour) }
	old := session.Clone()
	old.Time = expired
	asServer, err := issuer.Server([]string{"edge-1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	asHub := session.Clone()
	asHub.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert, nil }
	serverCert := hubCert(stranger, tunnel.HubServerName(hubID))
	strangeHub := session.Clone()
	strangeHub.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return serverCert() }
	// A stranger that presents the pinned CA beside a chain of its own.
	mixed := session.Clone()
	mixed.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		c, err := serverCert()
		if err == nil {
			c.Certificate = append(c.Certificate, issuer.CA.Raw)
		}
		return c, err
	}
	mixed.ClientAuth = tls.NoClientCert

	cases := map[string]struct {
		client, server *tls.Config
		ok             bool
	}{
		"an agent that joined":                          {trust.Config(cert, time.Now), session, true},
		"an agent that joins, by the pin":               {pinned.Config(nil, time.Now), join, true},
		"no client certificate":                         {withProto(trust.Config(nil, time.Now), "convoy-session.v1"), session, false},
		"a certificate of another CA":                   {trust.Config(agentCert(t, stranger, time.Now()), time.Now), session, false},
		"a certificate for another hub":                 {trust.Config(agentCert(t, otherHub, time.Now()), time.Now), session, false},
		"a certificate that has run out":                {trust.Config(cert, time.Now), old, false},
		"a serving certificate of the hub":              {trust.Config(asServer, time.Now), session, false},
		"a hub of another CA":                           {trust.Config(cert, time.Now), strangeHub, false},
		"a hub under another name":                      {trust.Config(cert, time.Now), noName, false},
		"an agent that plays the hub":                   {trust.Config(cert, time.Now), asHub, false},
		"a join on the session endpoint":                {pinned.Config(nil, time.Now), session, false},
		"a session on the join endpoint":                {trust.Config(cert, time.Now), join, false},
		"another pin":                                   {tunnel.HubTrust{Hub: hubID, Pin: tunnel.CAPin(stranger.CA)}.Config(nil, time.Now), join, false},
		"no pin at all":                                 {tunnel.HubTrust{Hub: hubID}.Config(nil, time.Now), join, false},
		"a stranger that shows the pinned CA beside it": {withProto(pinned.Config(nil, time.Now), "convoy-session.v1"), mixed, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, _, err := link(t, c.client, c.server)
			if err == nil && client != nil {
				_, err = client.Ping() // the client hears of the refusal only now
			}
			if (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func withProto(cfg *tls.Config, proto string) *tls.Config {
	cfg.NextProtos = []string{proto}
	verify := cfg.VerifyConnection
	cfg.VerifyConnection = func(cs tls.ConnectionState) error {
		cs.NegotiatedProtocol = "convoy-join.v1" // only what the server makes of it is of interest
		return verify(cs)
	}
	return cfg
}

func TestASessionEndpointWithoutAClientCADoesNotExist(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	if _, err := tunnel.SessionServerConfig(hubID, nil, hubCert(issuer, "x"), time.Now); err == nil {
		t.Error("made without a client CA")
	}
	if _, err := tunnel.SessionServerConfig("", pool(issuer.CA), hubCert(issuer, "x"), time.Now); err == nil {
		t.Error("made without a hub id")
	}
	cfg := sessionConfig(t, issuer)
	if cfg.ClientAuth != tls.RequireAndVerifyClientCert || !cfg.SessionTicketsDisabled || cfg.MinVersion != tls.VersionTLS13 {
		t.Errorf("weaker than it must be: %+v", cfg)
	}
}

func TestTheHubWritesTheSubjectOfCertificates(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	now := time.Now()
	leaf := agentCert(t, issuer, now).Leaf
	id, bound, err := tunnel.PeerIdentity(leaf, hubID)
	if err != nil || id != cluster || bound != "bound" {
		t.Fatalf("got %+v %q %v", id, bound, err)
	}
	if leaf.IsCA || leaf.KeyUsage != x509.KeyUsageDigitalSignature || len(leaf.DNSNames) != 0 || len(leaf.Subject.Organization) != 0 {
		t.Errorf("says more than who it is: %+v", leaf.Subject)
	}
	if got := leaf.NotAfter.Sub(now).Round(time.Minute); got != tunnel.CertificateTTL {
		t.Errorf("lives for %s", got)
	}
	if got := now.Sub(leaf.NotBefore).Round(time.Minute); got != tunnel.CertificateBackdate {
		t.Errorf("is back-dated by %s", got)
	}
	rsaLike, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(rsaLike.Public())
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string][]byte{"a P-384 key": public, "no key": nil, "garbage": []byte("garbage")} {
		if _, err := issuer.Prepare(cluster, "bound", k, now); !errors.Is(err, tunnel.ErrKey) {
			t.Errorf("%s: got %v, want ErrKey", name, err)
		}
	}
}

func TestAnIdentityIsReadExactly(t *testing.T) {
	t.Parallel()
	for _, bad := range []tunnel.ClusterID{
		{}, {Namespace: "a", Name: "b"}, {Namespace: "a/b", Name: "c", UID: "d"}, {Namespace: "a", Name: "b", UID: "c/d"},
	} {
		if id, err := tunnel.ParseURI(bad.URI(hubID), hubID); err == nil {
			t.Errorf("%+v was read as %+v", bad, id)
		}
	}
	u := cluster.URI(hubID)
	if got, err := tunnel.ParseURI(u, hubID); err != nil || got != cluster {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := tunnel.ParseURI(u, hubID[:8]); err == nil {
		t.Error("good for a hub whose id is a prefix")
	}
	u.RawQuery = "x=1"
	if _, err := tunnel.ParseURI(u, hubID); err == nil {
		t.Error("read with a query")
	}
}

func TestAPeerThatSpeaksSomethingElseIsRefused(t *testing.T) {
	t.Parallel()
	_, server := conns(t, "other.v1")
	if _, err := tunnel.NewConn(server, nil, nil); !errors.Is(err, tunnel.ErrSubprotocol) {
		t.Errorf("got %v, want ErrSubprotocol", err)
	}
}

func TestMessagesThatAreNotOursEndTheConnection(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		typ websocket.MessageType
		len int
	}{
		"text":                         {websocket.MessageText, 10},
		"longer than a message may be": {websocket.MessageBinary, tunnel.MaxMessage + 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := conns(t, tunnel.Subprotocol)
			server := wrap(t, b)
			wrote := make(chan error, 1)
			go func() { wrote <- a.Write(t.Context(), c.typ, make([]byte, c.len)) }()
			n, err := io.Copy(io.Discard, server)
			if err == nil {
				t.Error("the connection ended in good order")
			}
			if n > tunnel.MaxMessage+1 {
				t.Errorf("%d bytes were read", n)
			}
			if err := <-wrote; err != nil {
				t.Log(err) // cut off while it wrote, perhaps
			}
			if err := a.CloseNow(); err != nil {
				t.Log(err)
			}
		})
	}
}

func TestClosingUnblocksReadsAndWrites(t *testing.T) {
	t.Parallel()
	a, b := conns(t, tunnel.Subprotocol)
	client, server := wrap(t, a), wrap(t, b)
	ended := make(chan error, 2)
	go func() { _, err := client.Read(make([]byte, 1)); ended <- err }()
	go func() {
		for { // nobody reads: blocks at some point
			if _, err := client.Write(make([]byte, 32<<10)); err != nil {
				ended <- err
				return
			}
		}
	}()
	for client.Blocked() < 50*time.Millisecond {
		time.Sleep(time.Millisecond) //nolint:forbidigo // real sockets have no other sign of being full
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case err := <-ended:
			if err == nil {
				t.Error("ended without an error")
			}
		case <-time.After(5 * time.Second):
			t.Fatal("still blocked")
		}
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRequestsGoBothWays(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	trust := tunnel.HubTrust{Hub: hubID, CAs: pool(issuer.CA)}
	client, server, err := link(t, trust.Config(agentCert(t, issuer, time.Now()), time.Now), sessionConfig(t, issuer))
	if err != nil {
		t.Fatal(err)
	}
	type ownerKey struct{}
	handler := http.NewServeMux()
	handler.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Impersonate-User", "Impersonate-Extra-Scopes", "X-Remote-Group", "X-Forwarded-For", "Authorization", "Cookie"} {
			if v := r.Header.Get(name); v != "" {
				t.Errorf("%s: %s arrived", name, v)
			}
		}
		w.Header().Set("X-Owner", fmt.Sprint(r.Context().Value(ownerKey{})))
		if _, err := io.Copy(w, r.Body); err != nil {
			t.Error(err)
		}
	})
	handler.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
	})
	handler.HandleFunc("/switch", func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		// The other end hangs up on this, perhaps before it is all out.
		_, err = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
		if errors.Join(err, c.Close()) != nil {
			return
		}
	})
	ends := []*tunnel.Session{client, server}
	served := make(chan error, len(ends))
	for i, name := range []string{"the agent asks the hub", "the hub asks the agent"} {
		t.Run(name, func(t *testing.T) {
			srv := tunnel.NewServer(handler, func(ctx context.Context, owner any) context.Context {
				return context.WithValue(ctx, ownerKey{}, owner)
			})
			go func() { served <- srv.Serve(tunnel.Listener(ends[1-i])) }()
			c := tunnel.NewClient(ends[i])
			body := strings.Repeat("0123456789", 100000)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://anything/echo", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range map[string]string{
				"Impersonate-User": "system:admin", "Impersonate-Extra-Scopes": "x", "X-Remote-Group": "system:masters",
				"X-Forwarded-For": "127.0.0.1", "Authorization": "Bearer x", "Cookie": "a=b",
			} {
				r.Header.Set(k, v)
			}
			resp, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			if err := errors.Join(err, resp.Body.Close()); err != nil || string(got) != body {
				t.Errorf("%d bytes came back, %v", len(got), err)
			}
			if want := []string{"owner", "<nil>"}[i]; resp.Header.Get("X-Owner") != want {
				t.Errorf("owner %q, want %q", resp.Header.Get("X-Owner"), want)
			}
			for _, path := range []string{"/redirect", "/switch"} {
				if err := c.Call(t.Context(), http.MethodGet, path, nil, nil); !errors.Is(err, tunnel.ErrRedirect) {
					t.Errorf("%s: got %v, want ErrRedirect", path, err)
				}
			}
		})
	}
	if err := errors.Join(client.Close(), server.Close()); err != nil {
		t.Error(err)
	}
	for range ends {
		if err := <-served; err == nil {
			t.Error("a server ended without a reason")
		}
	}
}
