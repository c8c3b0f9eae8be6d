// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"kumodo.io/convoy/hub/source/fault"
)

const userAgent = "convoy"

// Client speaks HTTP under the rules of a Remote.
type Client struct {
	remote Remote
	origin *url.URL
	// HTTP follows redirects, and answers that ask to come back later are errors of
	// class RateLimited. It sends no credentials by itself.
	HTTP *http.Client
	own  *http.Transport // to the remote's own host: the client certificate is for it
	any  *http.Transport // to others that it sends us to
	open *http.Transport // without TLS
}

// Connect makes a client. It dials nothing yet. Close it.
func (r Remote) Connect() (*Client, error) {
	u, err := ParseURL(r.URL)
	if err != nil {
		return nil, err
	}
	roots, err := rootCAs(r.CA)
	if err != nil {
		return nil, err
	}
	var certificates []tls.Certificate
	if len(r.ClientCert) > 0 || len(r.ClientKey) > 0 {
		pair, err := tls.X509KeyPair(r.ClientCert, r.ClientKey)
		if err != nil {
			// The error may quote the key.
			return nil, fault.Failf(fault.ClassInvalid, "the client certificate and its key cannot be used together")
		}
		certificates = []tls.Certificate{pair}
	}
	c := &Client{remote: r, origin: u}
	c.own, c.any, c.open = c.transport(roots, false), c.transport(roots, false), c.transport(roots, true)
	c.own.TLSClientConfig.Certificates = certificates
	c.HTTP = &http.Client{Transport: roundTripper{c}, CheckRedirect: c.redirect}
	return c, nil
}

func (c *Client) transport(roots *x509.CertPool, onlyAllowed bool) *http.Transport {
	return &http.Transport{
		// No proxy of the library's: the policy makes the dial, and knows the operator's.
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			if onlyAllowed {
				return c.remote.Policy.Dial(ctx, address, true)
			}
			return c.remote.Policy.DialTLS(ctx, address)
		},
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    handshakeTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // a small answer must not become a large one
	}
}

// rootCAs adds certificates to the system's.
func rootCAs(pem []byte) (*x509.CertPool, error) {
	if len(pem) == 0 {
		return nil, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fault.Failf(fault.ClassInvalid, "the CA Secret has no certificate in PEM")
	}
	return roots, nil
}

// Close lets idle connections go.
func (c *Client) Close() {
	for _, t := range []*http.Transport{c.own, c.any, c.open} {
		t.CloseIdleConnections()
	}
}

// Host that the user named, with its port if there is one.
func (c *Client) Host() string { return c.origin.Host }

// URL that the user named.
func (c *Client) URL() *url.URL { u := *c.origin; return &u }

// Own reports a URL of the scheme, host and port that the user named.
func (c *Client) Own(u *url.URL) bool { return Origin(u) == Origin(c.origin) }

// roundTripper sends a request over the transport that is meant for it.
type roundTripper struct{ *Client }

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Header.Get("User-Agent") == "" {
		request = request.Clone(request.Context())
		request.Header.Set("User-Agent", userAgent)
	}
	transport := r.any
	switch {
	case request.URL.Scheme == SchemeHTTP:
		transport = r.open
	case r.Own(request.URL):
		transport = r.own
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	again := response.Header.Get("Retry-After")
	if code := response.StatusCode; code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable && again != "" {
		wait := fault.RetryAfter(again, time.Now())
		limited := &fault.Error{Class: fault.ClassRateLimited, RetryAfter: wait, Err: rateLimited{host: request.URL.Host, wait: wait, code: code}}
		return nil, errors.Join(limited, response.Body.Close())
	}
	return response, nil
}

// redirect decides about one step: never from https to http, and nothing that was
// meant for one host goes to another.
func (c *Client) redirect(request *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fault.ErrRedirects
	}
	if via[0].URL.Scheme == SchemeHTTPS && request.URL.Scheme != SchemeHTTPS {
		return fault.ErrDowngrade
	}
	for _, earlier := range via[1:] {
		if Origin(earlier.URL) != Origin(via[0].URL) {
			request.Header.Del("Authorization")
		}
	}
	if Origin(request.URL) != Origin(via[0].URL) {
		request.Header.Del("Authorization")
	}
	return nil
}

// Get asks for a URL with the credentials that belong there; everywhere says that
// they belong to the host of the URL as well. The caller closes the body.
func (c *Client) Get(ctx context.Context, target *url.URL, everywhere bool) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fault.Failf(fault.ClassInvalid, "the URL cannot be used")
	}
	sent := false
	if everywhere || c.Own(target) {
		user, password, err := c.remote.Credentials(target.Host, target.Path)
		if err != nil {
			return nil, err
		}
		if sent = user != "" || password != ""; sent {
			request.SetBasicAuth(user, password)
		}
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return nil, fault.Dial(ctx, target.Host, err)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	return nil, errors.Join(statusError(response, target.Host, sent), response.Body.Close())
}

// statusError says what a status means. host is the one that was asked first.
func statusError(response *http.Response, host string, sent bool) error {
	answered, code := response.Request.URL.Host, response.StatusCode
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		switch {
		case answered != host:
			return fault.Failf(fault.ClassAuth, "%s redirects to %s, which wants credentials (%d); none are sent to another host", host, answered, code)
		case !sent:
			return fault.Failf(fault.ClassAuth, "%s wants credentials (%d) and none are sent to it", host, code)
		default:
			return fault.Failf(fault.ClassAuth, "%s does not accept the credentials (%d): wrong, expired, or without the right to read", host, code)
		}
	case http.StatusNotFound:
		return fault.Failf(fault.ClassNotFound, "%s has nothing at %s (404)", answered, fault.Clean(response.Request.URL.Path))
	default:
		return fault.Failf(fault.ClassUnreachable, "%s answers with status %d", answered, code)
	}
}
