// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"kumodo.io/convoy/pkg/tunnel"
)

// asked are the Releases whose orders the hub wants back, in the order in which it
// asked. One session has one.
type asked struct {
	mu   sync.Mutex
	uids []string
	set  map[string]bool
	wake chan struct{} // one place
}

func newAsked() *asked { return &asked{set: map[string]bool{}, wake: make(chan struct{}, 1)} }

// add takes what the hub asks for. What is more than a Cluster can have is left
// out; the hub compares again at the next connect.
func (a *asked) add(uids []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, uid := range uids {
		if !a.set[uid] && len(a.set) < tunnel.MaxOrders {
			a.set[uid] = true
			a.uids = append(a.uids, uid)
		}
	}
	select {
	case a.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// next are the UIDs to give back in one request.
func (a *asked) next() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.uids[:min(len(a.uids), tunnel.MaxHeld)]...)
}

// drop forgets the first n.
func (a *asked) drop(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, uid := range a.uids[:n] {
		delete(a.set, uid)
	}
	a.uids = a.uids[n:]
}

// giveBack sends the orders that the hub asks for until ctx ends.
func (s *session) giveBack(ctx context.Context) error {
	tries := 0
	for {
		uids := s.asked.next()
		if len(uids) == 0 {
			select {
			case <-ctx.Done():
				return fmt.Errorf("give orders back: %w", ctx.Err())
			case <-s.asked.wake:
			}
			continue
		}
		n, err := s.giveSome(ctx, uids)
		if err == nil {
			s.asked.drop(n)
			tries = 0
			continue
		}
		var status *tunnel.StatusError
		if errors.As(err, &status) && status.Code < http.StatusInternalServerError && status.Code != http.StatusTooManyRequests {
			s.link.metrics.held.WithLabelValues("refused").Add(float64(n))
			logr.FromContextOrDiscard(ctx).Info("the hub asked for orders and does not take them", "count", n, "cause", err.Error())
			s.asked.drop(n)
			continue
		}
		most := min(HeldRetryMin<<min(tries, 8), HeldRetryMax)
		wait := most/2 + upTo(most/2)
		if status != nil {
			wait = max(wait, status.RetryAfter)
		}
		tries++
		logr.FromContextOrDiscard(ctx).Info("orders were not taken back; trying again", "count", n, "cause", err.Error(), "in", wait.Round(time.Millisecond).String())
		if err := sleep(ctx, wait); err != nil {
			return fmt.Errorf("give orders back: %w", err)
		}
	}
}

// giveSome sends one request about the first n of uids, as many as fit.
func (s *session) giveSome(ctx context.Context, uids []string) (n int, err error) {
	body := struct {
		Orders []json.RawMessage `json:"orders"`
	}{}
	size := 0
	for n < len(uids) {
		var raw json.RawMessage
		if orders := s.link.opts.Holder.Held(uids[n : n+1]); len(orders) > 0 {
			if raw, err = json.Marshal(orders[0]); err != nil {
				return n + 1, fmt.Errorf("encode order: %w", err)
			}
		}
		if len(body.Orders) > 0 && size+len(raw) > tunnel.MaxHeldBody-1024 {
			break
		}
		n++
		if raw == nil {
			continue // let go of meanwhile
		}
		size += len(raw) + 1
		body.Orders = append(body.Orders, raw)
	}
	if len(body.Orders) == 0 {
		return n, nil
	}
	ctx, cancel := context.WithTimeout(ctx, PostTimeout)
	defer cancel()
	if err := s.client.Call(ctx, http.MethodPost, "/v1/held", body, nil); err != nil {
		return n, err // says what failed
	}
	s.link.metrics.held.WithLabelValues("given").Add(float64(len(body.Orders)))
	logr.FromContextOrDiscard(ctx).Info("gave orders back to the hub, which asked for them", "count", len(body.Orders))
	return n, nil
}

// serveLayer gives a layer back that the hub lost. Only what a Release held here
// refers to can be had.
func (l *Link) serveLayer(w http.ResponseWriter, r *http.Request) {
	log := logr.FromContextOrDiscard(r.Context())
	digest := r.PathValue("digest")
	select {
	case l.layers <- struct{}{}:
		defer func() { <-l.layers }()
	default:
		l.metrics.layers.WithLabelValues("busy").Inc()
		tunnel.WriteProblem(w, http.StatusServiceUnavailable, tunnel.ReasonOverloaded, "other layers are being given back", time.Second)
		return
	}
	if l.opts.Holder == nil || !tunnel.ValidDigest(digest) {
		l.notHeld(w)
		return
	}
	from, size, err := l.opts.Holder.Layer(r.Context(), digest)
	switch {
	case errors.Is(err, ErrNotHeld):
		l.notHeld(w)
		return
	case err != nil:
		l.metrics.layers.WithLabelValues("failed").Inc()
		log.Error(err, "a layer that the hub asks for could not be read", "digest", digest)
		tunnel.WriteProblem(w, http.StatusServiceUnavailable, tunnel.ReasonInternal, "the layer could not be read", 0)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	w.WriteHeader(http.StatusOK)
	// A body shorter than its length is how the hub sees that reading failed.
	_, err = io.CopyN(tunnel.Stall{C: http.NewResponseController(w)}.Writer(w), from, size)
	if err = errors.Join(err, from.Close()); err != nil {
		l.metrics.layers.WithLabelValues("failed").Inc()
		log.Info("a layer was not given back in full", "digest", digest, "cause", err.Error())
		return
	}
	l.metrics.layers.WithLabelValues("given").Inc()
	log.Info("gave a layer back to the hub, which asked for it", "digest", digest, "bytes", size)
}

func (l *Link) notHeld(w http.ResponseWriter) {
	l.metrics.layers.WithLabelValues("not-held").Inc()
	tunnel.WriteProblem(w, http.StatusNotFound, tunnel.ReasonNotFound, "this agent does not hold that layer", 0)
}
