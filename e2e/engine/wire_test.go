// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

// blobs serves layers by digest.
type blobs struct {
	mu      sync.Mutex
	content map[string][]byte
	away    bool
}

func (s *blobs) put(raw []byte) *tunnel.Layer {
	sum := sha256.Sum256(raw)
	l := &tunnel.Layer{Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(raw))}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.content[l.Digest] = bytes.Clone(raw)
	return l
}

func (s *blobs) setAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func (s *blobs) Open(_ context.Context, layer tunnel.Layer, _ bool, _ string) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, errAway
	}
	raw, ok := s.content[layer.Digest]
	if !ok {
		return nil, fmt.Errorf("no layer %s", layer.Digest)
	}
	return io.NopCloser(bytes.NewReader(raw)), nil
}

// counter counts the engine's requests, watches left out, and can cut it off.
type counter struct {
	n    atomic.Int64
	mu   sync.Mutex
	seen []string
	when []time.Time // of each of seen
	// before is called with the number of each changing request before it is sent.
	before atomic.Pointer[func(int64, *http.Request) error]
	writes atomic.Int64
	// only says what is counted; nil: all.
	only func(*http.Request) bool
}

func (c *counter) around(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.URL.Query().Get("watch") != "" || c.only != nil && !c.only(req) {
			return next.RoundTrip(req)
		}
		c.n.Add(1)
		c.mu.Lock()
		c.seen, c.when = append(c.seen, req.Method+" "+req.URL.String()), append(c.when, time.Now())
		c.mu.Unlock()
		if req.Method != http.MethodGet {
			n := c.writes.Add(1)
			if f := c.before.Load(); f != nil {
				if err := (*f)(n, req); err != nil {
					return nil, err
				}
			}
		}
		return next.RoundTrip(req)
	})
}

// since returns the requests after the n-th.
func (c *counter) since(n int64) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.seen[n:]...)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
