// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestAGatewayThatCouldNotAuthenticateAgentsDoesNotStart(t *testing.T) {
	t.Parallel()
	hub, err := gatewaytest.NewHub()
	if err != nil {
		t.Fatal(err)
	}
	_, otherKey, err := gatewaytest.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]func(*gateway.Options){
		"no address":                     func(o *gateway.Options) { o.Addr = "" },
		"no hub id":                      func(o *gateway.Options) { o.HubID = "" },
		"no client CA":                   func(o *gateway.Options) { o.CA = nil },
		"a CA that is none":              func(o *gateway.Options) { leaf := *o.CA; leaf.IsCA = false; o.CA = &leaf },
		"no CA key":                      func(o *gateway.Options) { o.CASigner = nil },
		"the key of another CA":          func(o *gateway.Options) { o.CASigner = otherKey },
		"half of a server CA":            func(o *gateway.Options) { o.ServerCA = o.CA },
		"a server CA with another's key": func(o *gateway.Options) { o.ServerCA, o.ServerSigner = o.CA, otherKey },
		"no order keys":                  func(o *gateway.Options) { o.OrderKeys = nil },
		"an empty list of order keys":    func(o *gateway.Options) { o.OrderKeys = func() [][]byte { return nil } },
		"nobody who takes orders back":   func(o *gateway.Options) { o.Held = nil },
		"nobody who knows of resets":     func(o *gateway.Options) { o.Resets = nil },
		"nobody who knows orders":        func(o *gateway.Options) { o.Orders = nil },
		"nobody who has blobs":           func(o *gateway.Options) { o.Blobs = nil },
		"nobody who takes reports":       func(o *gateway.Options) { o.Reports = nil },
		"nobody who knows clusters":      func(o *gateway.Options) { o.Clusters = nil },
	}
	for name, change := range cases {
		o := hub.Options()
		change(&o)
		if _, err := gateway.New(o); !errors.Is(err, gateway.ErrOptions) {
			t.Errorf("%s: got %v, want ErrOptions", name, err)
		}
	}
	if _, err := gateway.New(hub.Options()); err != nil {
		t.Errorf("with all of it: %v", err)
	}
}

func TestWhatComesFromABrowserIsRefused(t *testing.T) {
	r := start(t)
	_, p := r.cluster(t, "edge")
	for _, origin := range []string{"https://evil.example", r.url, "null"} {
		for _, path := range []string{tunnel.JoinPath, tunnel.SessionPath} {
			p.Header = http.Header{"Origin": {origin}}
			_, err := p.Websocket(r.ctx, path)
			var status *tunnel.StatusError
			if !errors.As(err, &status) || status.Code != http.StatusForbidden {
				t.Errorf("%s from %s: got %v, want 403", path, origin, err)
			}
		}
	}
}

func TestOtherPathsAndProtocolsAreNotServed(t *testing.T) {
	r := start(t)
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the test's own gateway
	}}
	base := "https://" + r.gateway.Addr().String()
	for path, want := range map[string]int{
		"/": http.StatusNotFound, "/metrics": http.StatusNotFound, "/v1/hello": http.StatusNotFound, "/v1/reports": http.StatusNotFound,
		tunnel.SessionPath: http.StatusUpgradeRequired, tunnel.JoinPath: http.StatusUpgradeRequired,
	} {
		req, err := http.NewRequestWithContext(r.ctx, http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want {
			t.Errorf("%s: got %d, want %d", path, resp.StatusCode, want)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestASessionNeedsACertificateThatThisHubGave(t *testing.T) {
	r, stranger := start(t), start(t)
	_, _, _, _ = r.session(t, "honest")
	_, p := stranger.cluster(t, "elsewhere")
	if err := p.Join(stranger.ctx, false); err != nil {
		t.Fatal(err)
	}
	for name, cert := range map[string]*tls.Certificate{"of another hub": p.Cert, "none": {}} {
		conn, err := func() (*tunnel.Conn, error) {
			with := *p
			with.Token.Gateway = r.url
			return with.Websocket(r.ctx, tunnel.SessionPath)
		}()
		if err != nil {
			t.Fatal(err)
		}
		ca := x509.NewCertPool()
		ca.AddCert(r.CA)
		s, err := tunnel.ClientSession(r.ctx, conn, tunnel.HubTrust{Hub: r.ID, CAs: ca}.Config(cert, time.Now), tunnel.MuxOptions{})
		if err != nil {
			continue // refused at once
		}
		if err := tunnel.NewClient(s).Call(r.ctx, http.MethodPost, "/v1/hello", tunnel.Hello{}, nil); err == nil {
			t.Errorf("a certificate %s makes a session", name)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := r.gateway.Sessions().Len(); n != 1 {
		t.Errorf("%d sessions, want the honest one only", n)
	}
}

func TestHalfOpenConnectionsKeepNobodyOut(t *testing.T) {
	r := start(t)
	_, p := r.cluster(t, "good")
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 66)}
	hello := []byte{22, 3, 1, 1, 0, 1} // the start of a TLS ClientHello
	var held []net.Conn
	defer func() {
		for _, c := range held {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 1500 {
		ctx, cancel := context.WithTimeout(r.ctx, time.Second)
		c, err := (&net.Dialer{LocalAddr: from}).DialContext(ctx, "tcp", r.gateway.Addr().String())
		cancel()
		if err != nil {
			continue
		}
		if _, err := c.Write(hello); err != nil {
			t.Log(err)
		}
		held = append(held, c)
	}
	began := time.Now()
	if err := p.Join(r.ctx, false); err != nil {
		t.Fatal(err)
	}
	r.open(t, p)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("a good agent needed %s", took)
	}
}

func TestAHandshakeThatStallsIsCutOff(t *testing.T) {
	r := start(t, func(_ *gatewaytest.Hub, o *gateway.Options) { o.Plain = true })
	_, p := r.cluster(t, "stalls")
	cases := map[string]func() (io.ReadCloser, error){
		"nothing at all": func() (io.ReadCloser, error) {
			return (&net.Dialer{}).DialContext(r.ctx, "tcp", r.gateway.Addr().String())
		},
		"a header without an end": func() (io.ReadCloser, error) {
			c, err := (&net.Dialer{}).DialContext(r.ctx, "tcp", r.gateway.Addr().String())
			if err == nil {
				_, err = fmt.Fprint(c, "GET /v1/session HTTP/1.1\r\nHost: x\r\nX-Slow: ")
			}
			return c, err
		},
		"a websocket without TLS in it": func() (io.ReadCloser, error) { return p.Websocket(r.ctx, tunnel.SessionPath) },
	}
	for name, open := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			c, err := open()
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if _, err := io.Copy(io.Discard, bufio.NewReader(c)); err != nil {
					t.Log(err)
				}
			}()
			select {
			case <-ended:
			case <-time.After(tunnel.HandshakeTimeout + 5*time.Second):
				t.Errorf("still open after %s", time.Since(began))
			}
			if err := c.Close(); err != nil {
				t.Log(err)
			}
			<-ended
		})
	}
}
