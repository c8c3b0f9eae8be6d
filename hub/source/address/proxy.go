// SPDX-License-Identifier: Apache-2.0

package address

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// ProxyError: the operator's proxy did not connect us.
type ProxyError struct {
	// Host of the proxy, with its port if it has one.
	Host string
	Err  error
}

func (e *ProxyError) Error() string { return "the proxy " + e.Host + ": " + e.Err.Error() }

// Unwrap gives what is wrong.
func (e *ProxyError) Unwrap() error { return e.Err }

// errProxyURL: the hub was started with a URL that is none.
var errProxyURL = errors.New("its URL cannot be read")

// errProxyAnswer: what came from the proxy is no answer.
var errProxyAnswer = errors.New("its answer is too long")

const (
	// proxyTimeout of asking a proxy for a connection.
	proxyTimeout = 20 * time.Second
	// maxProxyAnswer is the size of a proxy's answer.
	maxProxyAnswer = 16 << 10
)

// Proxy is the one that an operator put before the hub: HTTPS_PROXY and NO_PROXY. It
// goes to a fetch worker, whose environment is empty, and may hold a password.
type Proxy struct {
	// HTTPS is the URL of the proxy for https; empty: there is none.
	HTTPS string `json:"https,omitempty"`
	// No lists who is reached without it.
	No string `json:"no,omitempty"`
}

// ProxyFromEnvironment reads what the hub was started with.
func ProxyFromEnvironment() Proxy {
	config := httpproxy.FromEnvironment()
	return Proxy{HTTPS: config.HTTPSProxy, No: config.NoProxy}
}

// forTarget gives the proxy for a host and port; nil where it is reached without.
func (p Proxy) forTarget(target string) (*url.URL, error) {
	if p.HTTPS == "" {
		return nil, nil
	}
	config := httpproxy.Config{HTTPSProxy: p.HTTPS, NoProxy: p.No}
	found, err := config.ProxyFunc()(&url.URL{Scheme: "https", Host: target})
	if err != nil {
		// The error repeats the URL, with its password.
		return nil, &ProxyError{Host: "of HTTPS_PROXY", Err: errProxyURL}
	}
	return found, nil
}

// DialTLS connects to a server that is then spoken to over TLS: through the operator's
// proxy if there is one for it, else as Dial does.
//
// The policy holds for the target also where a proxy makes the dial: every address
// that its name has here has to be allowed. A name that only the proxy knows is the
// proxy's to decide about, as everything is that leaves by it.
func (p Policy) DialTLS(ctx context.Context, target string) (net.Conn, error) {
	proxy, err := p.Proxy.forTarget(target)
	if err != nil {
		return nil, err
	}
	if proxy == nil {
		return p.Dial(ctx, target, false)
	}
	if err := p.checkName(ctx, target); err != nil {
		return nil, err
	}
	return connect(ctx, proxy, target)
}

// checkName checks every address that a target has here.
func (p Policy) checkName(ctx context.Context, target string) error {
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrDenied, target)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return p.Check(ip)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	var name *net.DNSError
	switch {
	case errors.As(err, &name) && ctx.Err() == nil:
		return nil // not known here: the proxy may know it
	case err != nil:
		return err
	}
	for _, ip := range found {
		if err := p.Check(ip); err != nil {
			return err
		}
	}
	return nil
}

// connect asks a proxy for a connection.
func connect(ctx context.Context, proxy *url.URL, target string) (conn net.Conn, err error) {
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}
	if conn, err = dialer.DialContext(ctx, "tcp", proxyAddress(proxy)); err != nil {
		return nil, &ProxyError{Host: proxy.Host, Err: err}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // its error has no reader: what is under way fails instead
	defer func() {
		stop()
		if err != nil {
			err = errors.Join(err, ignoreClosed(conn.Close()))
			conn = nil
		}
	}()
	if proxy.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: proxy.Hostname(), MinVersion: tls.VersionTLS12})
	}
	if err := conn.SetDeadline(time.Now().Add(proxyTimeout)); err != nil {
		return conn, err
	}
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{"User-Agent": {"convoy"}}}
	if user := proxy.User; user != nil {
		password, _ := user.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	if err := request.Write(conn); err != nil {
		return conn, &ProxyError{Host: proxy.Host, Err: err}
	}
	// The server says nothing before we do, so that no byte of its is in the buffer.
	answer, err := http.ReadResponse(bufio.NewReader(&oneByte{conn, maxProxyAnswer}), request) //nolint:bodyclose // what follows the head is the server's, or goes with the connection
	if err != nil {
		return conn, &ProxyError{Host: proxy.Host, Err: err}
	}
	if answer.StatusCode != http.StatusOK {
		return conn, &ProxyError{Host: proxy.Host, Err: proxyStatus(answer.StatusCode)}
	}
	return conn, conn.SetDeadline(time.Time{})
}

// proxyStatus is what a proxy answers with instead of a connection.
type proxyStatus int

func (s proxyStatus) Error() string {
	switch s {
	case http.StatusProxyAuthRequired:
		return "it wants other credentials (407)"
	case http.StatusForbidden:
		return "it does not allow that host (403)"
	}
	return fmt.Sprintf("it answers with status %d", int(s))
}

func proxyAddress(proxy *url.URL) string {
	port := proxy.Port()
	if port == "" {
		port = "80"
		if proxy.Scheme == "https" {
			port = "443"
		}
	}
	return net.JoinHostPort(proxy.Hostname(), port)
}

// oneByte reads no more than what is needed, and not without end.
type oneByte struct {
	conn net.Conn
	left int
}

func (o *oneByte) Read(p []byte) (int, error) {
	if o.left--; o.left < 0 {
		return 0, errProxyAnswer
	}
	return o.conn.Read(p[:min(1, len(p))])
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
