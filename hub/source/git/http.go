// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
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
	idle   func()   // lets idle connections go
	origin *url.URL // where credentials belong
	base   *url.URL // where the server sent us to
	bodies []io.Closer
}

func dialHTTP(remote Remote, u *url.URL) (connection, error) {
	client, err := endpoint.Remote{
		URL: remote.URL, CA: remote.CA, Policy: remote.Policy,
		Auth: endpoint.Auth{ClientCert: remote.ClientCert, ClientKey: remote.ClientKey},
	}.Connect()
	if err != nil {
		return nil, err
	}
	base := *u
	base.Path = strings.TrimSuffix(base.Path, "/")
	c := &httpConnection{remote: remote, origin: &base, base: &base, idle: client.Close}
	c.client = &http.Client{Transport: client.HTTP.Transport, CheckRedirect: c.redirect}
	return c, nil
}

// redirect decides about one step. Credentials go to the host that the user named
// and to no other; the header is set per host in send, so here it is removed
// whatever the library would do.
func (c *httpConnection) redirect(request *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fault.ErrRedirects
	}
	if request.URL.Scheme != c.origin.Scheme {
		return fault.ErrDowngrade
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
		return nil, fault.Failf(fault.ClassInvalid, "the URL cannot be used")
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
		return nil, fault.Failf(fault.ClassUnreachable, "the server's answer is not that of a Git server")
	}
	return body, nil
}

func (c *httpConnection) upload(ctx context.Context, body []byte) (io.Reader, error) {
	target := *c.base
	target.Path += "/" + service
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fault.Failf(fault.ClassInvalid, "the URL cannot be used")
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
		return nil, fault.Dial(request.Context(), c.origin.Host, err)
	}
	c.bodies = append(c.bodies, response.Body)
	switch code := response.StatusCode; {
	case code == http.StatusOK && response.Header.Get("Content-Type") == accept:
		return response, nil
	case code == http.StatusOK:
		return nil, fault.Failf(fault.ClassUnreachable, "%s answers, but not as a Git server", response.Request.URL.Host)
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return nil, c.refused(response)
	case code == http.StatusNotFound && c.remote.none():
		return nil, fault.Failf(fault.ClassUnreachable, "%s knows no such repository, or none without credentials (404)", response.Request.URL.Host)
	case code == http.StatusNotFound:
		return nil, fault.Failf(fault.ClassAuth, "%s knows no such repository, or none for these credentials (404)", response.Request.URL.Host)
	default:
		return nil, fault.Failf(fault.ClassUnreachable, "%s answers with status %d", response.Request.URL.Host, code)
	}
}

// refused says whose credentials were not accepted, or that none were sent.
func (c *httpConnection) refused(response *http.Response) error {
	host := response.Request.URL.Host
	switch {
	case host != c.origin.Host:
		return fault.Failf(fault.ClassAuth, "%s redirects to %s, which wants credentials (%d); none are sent to another host", c.origin.Host, host, response.StatusCode)
	case c.remote.none():
		return fault.Failf(fault.ClassAuth, "%s wants credentials (%d) and there is no secretRef with any", host, response.StatusCode)
	default:
		return fault.Failf(fault.ClassAuth, "%s does not accept the credentials (%d): wrong, expired, or without the right to read", host, response.StatusCode)
	}
}

func (c *httpConnection) close() error {
	var errs []error
	for _, body := range c.bodies {
		errs = append(errs, body.Close())
	}
	c.idle()
	return errors.Join(errs...)
}
