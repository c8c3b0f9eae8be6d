// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"kumodo.io/convoy/hub/source/address"
)

const (
	service    = "git-upload-pack"
	userAgent  = "git/convoy" // servers decide by the first word whether to speak Git
	refsSuffix = "/info/refs"
)

// httpConnection speaks the "smart" protocol: a GET for the refs, a POST for a pack.
type httpConnection struct {
	remote Remote
	client *http.Client
	origin *url.URL // where credentials belong
	base   *url.URL // where the server sent us to
	bodies []io.Closer
}

func dialHTTP(remote Remote, u *url.URL) (connection, error) {
	roots, err := rootCAs(remote.CA)
	if err != nil {
		return nil, err
	}
	base := *u
	base.Path = strings.TrimSuffix(base.Path, "/")
	c := &httpConnection{remote: remote, origin: &base, base: &base}
	c.client = &http.Client{
		Transport: &http.Transport{
			// No proxy: an address is checked at the dial, which a proxy would make.
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				return remote.Policy.Dial(ctx, address, u.Scheme == "http")
			},
			TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:   handshakeTimeout,
			ResponseHeaderTimeout: headerTimeout,
			ForceAttemptHTTP2:     true,
			DisableCompression:    true, // a small answer must not become a large one
		},
		CheckRedirect: c.redirect,
	}
	return c, nil
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
		return nil, failf(ClassInvalid, "the CA Secret has no certificate in PEM")
	}
	return roots, nil
}

var (
	errRedirects = errors.New("too many redirects")
	errDowngrade = errors.New("a redirect away from https")
)

// redirect decides about one step. Credentials go to the host that the user named
// and to no other; the header is set per host in send, so here it is removed
// whatever the library would do.
func (c *httpConnection) redirect(request *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errRedirects
	}
	if request.URL.Scheme != c.origin.Scheme {
		return errDowngrade
	}
	request.Header.Del("Authorization")
	c.authorize(request)
	return nil
}

func (c *httpConnection) authorize(request *http.Request) {
	if request.URL.Scheme != c.origin.Scheme || request.URL.Host != c.origin.Host {
		return
	}
	switch {
	case c.remote.Bearer != "":
		request.Header.Set("Authorization", "Bearer "+c.remote.Bearer)
	case !c.remote.none():
		request.SetBasicAuth(c.remote.Username, c.remote.Password)
	}
}

func (c *httpConnection) advertisement(ctx context.Context) (io.Reader, error) {
	target := *c.base
	target.Path += refsSuffix
	target.RawQuery = "service=" + service
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, failf(ClassInvalid, "the URL cannot be used")
	}
	response, err := c.send(request, "application/x-"+service+"-advertisement")
	if err != nil {
		return nil, err
	}
	// Later requests go where this one ended, as Git itself does it.
	final := *response.Request.URL
	if path, ok := strings.CutSuffix(final.Path, refsSuffix); ok {
		c.base = &url.URL{Scheme: final.Scheme, Host: final.Host, Path: path}
	}
	// The first packet names the service, a flush packet ends that section.
	body := &limited{r: response.Body, left: maxAdvertisementBytes, limit: maxAdvertisementBytes, what: "the list of refs"}
	head := pktline.NewScanner(body)
	if !head.Scan() || !strings.HasPrefix(string(head.Bytes()), "# service="+service) || !head.Scan() || len(head.Bytes()) != 0 {
		return nil, failf(ClassUnreachable, "the server's answer is not that of a Git server")
	}
	return body, nil
}

func (c *httpConnection) upload(ctx context.Context, body []byte) (io.Reader, error) {
	target := *c.base
	target.Path += "/" + service
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, failf(ClassInvalid, "the URL cannot be used")
	}
	request.Header.Set("Content-Type", "application/x-"+service+"-request")
	response, err := c.send(request, "application/x-"+service+"-result")
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

func (c *httpConnection) send(request *http.Request, accept string) (*http.Response, error) {
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set("Accept", accept)
	c.authorize(request)
	response, err := c.client.Do(request)
	if err != nil {
		return nil, dialError(request.Context(), c.origin.Host, err)
	}
	c.bodies = append(c.bodies, response.Body)
	switch code := response.StatusCode; {
	case code == http.StatusOK && response.Header.Get("Content-Type") == accept:
		return response, nil
	case code == http.StatusOK:
		return nil, failf(ClassUnreachable, "%s answers, but not as a Git server", response.Request.URL.Host)
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return nil, c.refused(response)
	case code == http.StatusNotFound && c.remote.none():
		return nil, failf(ClassUnreachable, "%s knows no such repository, or none without credentials (404)", response.Request.URL.Host)
	case code == http.StatusNotFound:
		return nil, failf(ClassAuth, "%s knows no such repository, or none for these credentials (404)", response.Request.URL.Host)
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable && response.Header.Get("Retry-After") != "":
		wait := retryAfter(response.Header.Get("Retry-After"), time.Now())
		err := failf(ClassRateLimited, "%s asks to be left alone for %s (%d)", response.Request.URL.Host, wait, code)
		var limit *Error
		if errors.As(err, &limit) {
			limit.RetryAfter = wait
		}
		return nil, err
	default:
		return nil, failf(ClassUnreachable, "%s answers with status %d", response.Request.URL.Host, code)
	}
}

// refused says whose credentials were not accepted, or that none were sent.
func (c *httpConnection) refused(response *http.Response) error {
	host := response.Request.URL.Host
	switch {
	case host != c.origin.Host:
		return failf(ClassAuth, "%s redirects to %s, which wants credentials (%d); none are sent to another host", c.origin.Host, host, response.StatusCode)
	case c.remote.none():
		return failf(ClassAuth, "%s wants credentials (%d) and there is no secretRef with any", host, response.StatusCode)
	default:
		return failf(ClassAuth, "%s does not accept the credentials (%d): wrong, expired, or without the right to read", host, response.StatusCode)
	}
}

func (c *httpConnection) close() error {
	var errs []error
	for _, body := range c.bodies {
		errs = append(errs, body.Close())
	}
	c.client.CloseIdleConnections()
	return errors.Join(errs...)
}

// dialError sorts an error of a connection. host is what the user named.
func dialError(ctx context.Context, host string, err error) error {
	var (
		own       *Error
		name      *net.DNSError
		unknown   x509.UnknownAuthorityError
		wrongName x509.HostnameError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
		timeout   net.Error
		inner     *url.Error
	)
	switch {
	case errors.As(err, &own):
		return err
	case errors.Is(err, address.ErrDenied):
		return failf(ClassDenied, "%s: %w; an operator opens ranges with --source-allow-cidr", host, deniedOnly(err))
	case errors.Is(err, errRedirects), errors.Is(err, errDowngrade):
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return failf(ClassUnreachable, "%s: %w", host, err)
	case errors.As(err, &name):
		return failf(ClassUnreachable, "%s: the name does not resolve", host)
	case errors.As(err, &unknown):
		return failf(ClassCertificate, "%s: the certificate is from an authority that is not trusted; caSecretRef names one", host)
	case errors.As(err, &wrongName), errors.As(err, &invalid), errors.As(err, &verify):
		return failf(ClassCertificate, "%s: the certificate is not valid: %s", host, clean(rootCause(err).Error()))
	case errors.Is(ctx.Err(), context.Canceled):
		return failf(ClassUnreachable, "%s: given up: %w", host, context.Canceled)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return failf(ClassTimeout, "%s: no answer in time", host)
	default:
		return failf(ClassUnreachable, "%s: %s", host, clean(rootCause(err).Error()))
	}
}

// deniedOnly keeps the sentinel with the address, without what the dialler adds.
func deniedOnly(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil || errors.Is(inner, address.ErrDenied) && errors.Unwrap(inner) == nil {
			return err
		}
		err = inner
	}
}

// rootCause is the innermost error: the outer ones repeat the URL.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
