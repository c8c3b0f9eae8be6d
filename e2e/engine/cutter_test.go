// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"io"
	"net/http"
	"sync"
)

// cutter can end all watches of a client at once.
type cutter struct {
	mu   sync.Mutex
	open map[*cutBody]bool
}

func (c *cutter) around(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		res, err := next.RoundTrip(req)
		if err != nil || req.URL.Query().Get("watch") == "" {
			return res, err
		}
		body := &cutBody{ReadCloser: res.Body, cut: make(chan struct{})}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.open == nil {
			c.open = map[*cutBody]bool{}
		}
		c.open[body] = true
		res.Body = body
		return res, nil
	})
}

// all cuts what is open and says how many there were.
func (c *cutter) all() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for body := range c.open {
		if err := body.end(); err == nil {
			n++
		}
		delete(c.open, body)
	}
	return n
}

type cutBody struct {
	io.ReadCloser
	once sync.Once
	cut  chan struct{}
}

func (b *cutBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	select {
	case <-b.cut:
		return 0, io.ErrUnexpectedEOF
	default:
		return n, err
	}
}

func (b *cutBody) end() error {
	b.once.Do(func() { close(b.cut) })
	return b.ReadCloser.Close()
}
