// SPDX-License-Identifier: Apache-2.0

// Package observer asks the hub's observer what only it can answer. It stands beside
// the flow, between a user's request and the role that renders.
package observer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// Limits of a request.
const (
	// maxAnswer is more than the observer gives: its limit is the one that is told.
	maxAnswer = 24 << 20
	// timeout is more than the observer takes, which says then that it took too long,
	// and less than the 34 s after which an API server ends a create.
	timeout      = 32 * time.Second
	dialTimeout  = 5 * time.Second
	idleTimeout  = 30 * time.Second
	maxIdleConns = 4
)

var (
	// errNoURL: this API server knows no observer.
	errNoURL = errors.New("no observer: the hub was started with an empty --observer-url")
	// errAnswer: what answers there is no observer.
	errAnswer = errors.New("the observer's answer cannot be read")
)

// Signer proves to the observer that a request is the API server's.
type Signer func(r *http.Request, body []byte)

// Client asks one observer.
type Client struct {
	url  string
	sign Signer
	http *http.Client
}

// New makes a client; an empty URL makes one that always says so.
func New(url string, sign Signer) *Client {
	return &Client{url: url, sign: sign, http: &http.Client{
		Timeout: timeout,
		// An observer redirects nobody.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			// Through no proxy: it is a Service beside the hub.
			DialContext:     (&net.Dialer{Timeout: dialTimeout}).DialContext,
			IdleConnTimeout: idleTimeout, MaxIdleConns: maxIdleConns,
		},
	}}
}

// Close ends connections that nobody uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Preview of a Release: with a body of that one, else of the stored one, at another
// revision if one is given. Errors are the API's.
func (c *Client) Preview(ctx context.Context, namespace, name, revision string, unsaved *v1alpha1.Release) (*v1alpha1.Preview, error) {
	query := ""
	if revision != "" {
		query = "?" + url.Values{"revision": {revision}}.Encode()
	}
	return about[v1alpha1.Preview](ctx, c, "preview", namespace, name, query, unsaved)
}

// Health of the objects of a Release.
func (c *Client) Health(ctx context.Context, namespace, name string) (*v1alpha1.ReleaseHealth, error) {
	return about[v1alpha1.ReleaseHealth](ctx, c, "health", namespace, name, "", nil)
}

// Diff of a Release; with a body, of that one.
func (c *Client) Diff(ctx context.Context, namespace, name string, unsaved *v1alpha1.Release) (*v1alpha1.ReleaseDiff, error) {
	return about[v1alpha1.ReleaseDiff](ctx, c, "diff", namespace, name, "", unsaved)
}

// History of a Release.
func (c *Client) History(ctx context.Context, namespace, name string) (*v1alpha1.ReleaseHistory, error) {
	return about[v1alpha1.ReleaseHistory](ctx, c, "history", namespace, name, "", nil)
}

// about asks one question about a Release.
func about[T any](ctx context.Context, c *Client, question, namespace, name, query string, unsaved *v1alpha1.Release) (*T, error) {
	method := http.MethodGet
	var body []byte
	if unsaved != nil {
		var err error
		if body, err = json.Marshal(unsaved); err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("write the Release for the observer: %w", err))
		}
		method = http.MethodPost
	}
	out := new(T)
	if err := c.ask(ctx, method, "/"+question+"/"+url.PathEscape(namespace)+"/"+url.PathEscape(name)+query, body, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ask reads the answer into out, or gives the error that the observer says.
func (c *Client) ask(ctx context.Context, method, path string, body []byte, out any) error {
	if c.url == "" {
		return apierrors.NewServiceUnavailable(errNoURL.Error())
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("ask the observer: %w", err))
	}
	request.Header.Set("Accept", "application/json")
	c.sign(request, body)
	answer, err := c.http.Do(request)
	if err != nil && late(err) {
		return errLate()
	}
	if err != nil {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("the observer (--observer-url %s) cannot be reached: %v", c.url, err))
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if closed := answer.Body.Close(); err == nil {
		err = closed
	}
	switch {
	case err != nil && late(err):
		return errLate()
	case err != nil:
		return apierrors.NewServiceUnavailable(fmt.Sprintf("the observer's answer broke off: %v", err))
	case len(raw) > maxAnswer:
		return apierrors.NewInternalError(fmt.Errorf("%w: more than %d MiB", errAnswer, maxAnswer>>20))
	case answer.StatusCode != http.StatusOK:
		return refusal(answer.StatusCode, raw)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("%w: %w", errAnswer, err))
	}
	return nil
}

// late reports that an observer was reached, and the answer took too long.
func late(err error) bool {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	var timed net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timed) && timed.Timeout()
}

func errLate() error {
	return apierrors.NewTimeoutError("the answer took too long: of a preview, its source and its render have to be done within 30 s", 0)
}

// refusal hands on what the observer says. That it does not believe this API server is
// no refusal of the user.
func refusal(code int, raw []byte) error {
	status := metav1.Status{}
	if err := json.Unmarshal(raw, &status); err != nil || status.Kind != "Status" || int(status.Code) != code || status.Status != metav1.StatusFailure {
		return apierrors.NewInternalError(fmt.Errorf("%w: HTTP %d and no Status", errAnswer, code))
	}
	if code == http.StatusForbidden {
		return apierrors.NewInternalError(fmt.Errorf("%w: it does not take requests of this API server; do both have the same keys?", errAnswer))
	}
	return &apierrors.StatusError{ErrStatus: status}
}
