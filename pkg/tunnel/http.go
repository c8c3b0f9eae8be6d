// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Client sends requests to the peer of a session, each on a stream of its own.
type Client struct{ transport *http.Transport }

// NewClient of m. It keeps nothing open between requests.
func NewClient(m Mux) *Client {
	return &Client{transport: &http.Transport{
		// The proxy of the environment is for the connection outside only.
		Proxy: nil,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return m.Open(ctx)
		},
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: MaxHeader,
	}}
}

// Do sends r, whatever host its URL names. An answer that redirects or switches
// protocols is an error. The caller closes the body.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = "http", "convoy", "convoy", ""
	StripHeaders(out.Header)
	resp, err := c.transport.RoundTrip(out)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return nil, errors.Join(fmt.Errorf("%s %s: %w: %d", r.Method, r.URL.Path, ErrRedirect, resp.StatusCode), resp.Body.Close())
	}
	return resp, nil
}

// Call sends in as JSON, or nothing when it is nil, and reads the answer into
// out, unless that is nil. An answer that is not a success is a *StatusError.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) (err error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode %s %s: %w", method, path, err)
		}
		body = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://convoy"+path, body)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.Do(r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %w", method, path, ReadProblem(resp))
	}
	if out == nil {
		return nil
	}
	if err := DecodeJSON(resp.Body, MaxAnswerBody, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// ReadProblem makes a *StatusError of an answer that is not a success.
func ReadProblem(resp *http.Response) error {
	e := &StatusError{Code: resp.StatusCode}
	if err := DecodeJSON(resp.Body, 64<<10, &e.Problem); err != nil {
		e.Problem = Problem{Reason: ReasonInternal, Message: resp.Status}
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 && s <= 3600 {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	return e
}

// WriteProblem answers with a Problem. retry is the hint in Retry-After, if any.
func WriteProblem(w http.ResponseWriter, code int, reason, message string, retry time.Duration) {
	if retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(retry.Seconds()+0.5)))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(Problem{Reason: reason, Message: message}); err != nil {
		return // the peer is gone; there is nobody left to tell
	}
}

// WriteJSON answers 200 with v.
func WriteJSON(w http.ResponseWriter, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		WriteProblem(w, http.StatusInternalServerError, ReasonInternal, "the answer could not be encoded", 0)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	// A peer that does not read its answer holds up nothing but its stream.
	out := Stall{C: http.NewResponseController(w)}.Writer(w)
	for part := range slices.Chunk(raw, MaxMessage) {
		if _, err := out.Write(part); err != nil {
			return // the peer is gone; there is nobody left to tell
		}
	}
}

// DecodeJSON reads one JSON value of at most limit bytes. Unknown fields are
// skipped, a second value is an error.
func DecodeJSON(r io.Reader, limit int64, v any) error {
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	if int64(len(raw)) > limit {
		return fmt.Errorf("body of more than %d bytes: %w", limit, ErrTooLong)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("decode body: %w", err)
	}
	return nil
}

// NewServer serves the streams of many sessions with one handler. owned puts the
// owner of a stream's session into the context of its request.
func NewServer(h http.Handler, owned func(ctx context.Context, owner any) context.Context) *http.Server {
	s := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			StripHeaders(r.Header)
			h.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: HeaderTimeout,
		IdleTimeout:       IdleTimeout,
		MaxHeaderBytes:    MaxHeader,
		ErrorLog:          discard,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return owned(ctx, Owner(conn))
		},
	}
	s.SetKeepAlivesEnabled(false)
	return s
}

// StripHeaders removes what could pass for somebody's identity: inside a session
// that is known from the session alone.
func StripHeaders(h http.Header) {
	for name := range h {
		switch {
		case strings.HasPrefix(name, "Impersonate-"), strings.HasPrefix(name, "X-Remote-"), strings.HasPrefix(name, "X-Forwarded-"):
			delete(h, name)
		}
	}
	for _, name := range []string{
		"Authorization", "Proxy-Authorization", "Proxy-Authenticate", "Proxy-Connection", "Forwarded", "X-Real-Ip",
		"Cookie", "Upgrade", "Te", "Trailer", "Keep-Alive",
	} {
		h.Del(name)
	}
}

// Stall bounds each step of a body by StallTimeout: it moves the deadline of the
// stream before each read or write.
type Stall struct{ C *http.ResponseController }

// Reader reads a request's body, which has to come at MinBodyRate too.
func (s Stall) Reader(r io.Reader) io.Reader { return &stallReader{Stall: s, r: r, began: time.Now()} }

// Writer writes an answer's body.
func (s Stall) Writer(w io.Writer) io.Writer { return stallWriter{s, w} }

type stallReader struct {
	Stall
	r     io.Reader
	began time.Time
	read  int64
}

func (s *stallReader) Read(p []byte) (int, error) {
	end := time.Now().Add(StallTimeout)
	if slowest := s.began.Add(StallTimeout + time.Duration(s.read)*time.Second/MinBodyRate); slowest.Before(end) {
		end = slowest
	}
	if err := s.C.SetReadDeadline(end); err != nil {
		return 0, fmt.Errorf("bound read: %w", err)
	}
	n, err := s.r.Read(p)
	s.read += int64(n)
	return n, err // io.EOF
}

type stallWriter struct {
	Stall
	w io.Writer
}

func (s stallWriter) Write(p []byte) (int, error) {
	if err := s.C.SetWriteDeadline(time.Now().Add(StallTimeout)); err != nil {
		return 0, fmt.Errorf("bound write: %w", err)
	}
	return s.w.Write(p) // said by the caller
}
