// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/net/http/httpproxy"

	"kumodo.io/convoy/pkg/tunnel"
)

// dial makes the websocket. Everything that could have changed since the last
// time is read again: proxy settings, CA file, addresses. trust is the hub whose
// CA is accepted outside too, beside the system's roots and OuterCAFile.
func (l *Link) dial(ctx context.Context, gateway, path string, trust tunnel.HubTrust) (*tunnel.Conn, error) {
	target, err := url.Parse(strings.TrimSuffix(gateway, "/") + path)
	if err != nil {
		return nil, fmt.Errorf("gateway URL: %w", err)
	}
	extra, err := l.outerCAs()
	if err != nil {
		return nil, err
	}
	choose := httpproxy.FromEnvironment().ProxyFunc()
	var local, remote net.Addr
	var proxyHost string
	transport := &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			proxy, err := choose(r.URL)
			if err != nil {
				return nil, errors.New("the proxy setting for the gateway does not parse") // may hold a password
			}
			if proxy != nil {
				proxyHost = proxy.Hostname()
			}
			return proxy, nil
		},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := l.opts.Dial(ctx, network, addr)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errUnreachable, err)
			}
			l.reach()
			if err := tunnel.TuneTCP(c); err != nil {
				return nil, errors.Join(err, c.Close())
			}
			local, remote = c.LocalAddr(), c.RemoteAddr()
			return c, nil
		},
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			InsecureSkipVerify: true, // VerifyConnection does it, with the hub's CA beside the system's
			VerifyConnection: func(cs tls.ConnectionState) error {
				names := []string{cs.ServerName}
				if cs.ServerName == "" { // an IP address, of the gateway or of the proxy
					names = []string{target.Hostname(), proxyHost}
				}
				return verifyOuter(cs.PeerCertificates, names, trust, extra, l.at(cs.PeerCertificates))
			},
		},
		TLSHandshakeTimeout:   tunnel.HandshakeTimeout,
		ResponseHeaderTimeout: tunnel.HandshakeTimeout,
		TLSNextProto:          map[string]func(string, *tls.Conn) http.RoundTripper{}, // websockets need HTTP/1.1
		DisableKeepAlives:     true,
	}
	ws, resp, err := websocket.Dial(ctx, target.String(), &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
		Subprotocols: []string{tunnel.Subprotocol}, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return nil, dialError(resp, err)
	}
	return tunnel.NewConn(ws, local, remote) // says what failed
}

// dialError keeps a hint to come back later, if the hub gave one.
func dialError(resp *http.Response, err error) error {
	if resp == nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return fmt.Errorf("dial gateway: %w", err)
	}
	// Only the hint counts: who answered is not known out here, so that a refusal
	// is no refusal by the hub.
	status := &tunnel.StatusError{Code: resp.StatusCode, Problem: tunnel.Problem{Reason: tunnel.ReasonOverloaded, Message: resp.Status}}
	if d, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s"); err == nil && d > 0 && d <= time.Hour {
		status.RetryAfter = d
	}
	if status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden {
		status.Code = http.StatusBadGateway
	}
	return fmt.Errorf("dial gateway: %w", status)
}

// verifyOuter accepts a chain of the pinned hub CA, of the system's roots, or of
// the extra ones, for one of names.
func verifyOuter(chain []*x509.Certificate, names []string, trust tunnel.HubTrust, extra []*x509.Certificate, now time.Time) error {
	var failures []error
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	for _, cert := range extra {
		roots.AddCert(cert)
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		for _, t := range []tunnel.HubTrust{trust, {CAs: roots}} {
			err := t.Verify(chain, name, now)
			if err == nil {
				return nil
			}
			failures = append(failures, err)
		}
	}
	// Who presented what, and what to do about it: an operator sees this line first.
	who := "nobody"
	if len(chain) > 0 {
		who = fmt.Sprintf("%q, issued by %q", chain[0].Subject, chain[0].Issuer)
	}
	return &outerError{who: who, err: errors.Join(append(failures, tunnel.ErrHub)...)}
}

// outerCAs reads OuterCAFile, and fails rather than going on without it.
func (l *Link) outerCAs() ([]*x509.Certificate, error) {
	if l.opts.OuterCAFile == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(l.opts.OuterCAFile)
	if err != nil {
		return nil, fmt.Errorf("outer CA file: %w", err)
	}
	certs, err := parseCertificates(raw)
	if err != nil {
		return nil, fmt.Errorf("outer CA file: %w", err)
	}
	return certs, nil
}
