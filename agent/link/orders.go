// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/go-logr/logr"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// followOrders keeps an orders stream open for the life of the session.
func (s *session) followOrders(ctx context.Context) error {
	for {
		err := s.readOrders(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("orders: %w", ctx.Err())
		}
		var status *tunnel.StatusError
		select {
		case <-s.mux.Done():
			return fmt.Errorf("orders: %w", err)
		default:
			if errors.As(err, &status) {
				return fmt.Errorf("orders: %w", err) // the hub does not want this session to have any
			}
		}
		wait := ReopenGap + upTo(ReopenGap)
		if errors.Is(err, ErrIncomplete) {
			wait = time.Minute/2 + upTo(time.Minute)
		}
		logr.FromContextOrDiscard(ctx).Info("orders stream ended; opening another", "cause", err.Error(), "in", wait.Round(time.Millisecond).String())
		if err := sleep(ctx, wait); err != nil {
			return fmt.Errorf("orders: %w", err)
		}
	}
}

// readOrders opens one stream and takes what comes, until it ends. It never
// returns nil.
func (s *session) readOrders(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	have := s.link.opts.Engine.Have()
	body, err := json.Marshal(tunnel.OrdersRequest{Have: have})
	if err != nil {
		return fmt.Errorf("encode orders request: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://convoy/v1/orders", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make orders request: %w", err)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return err // says what failed
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusOK {
		return tunnel.ReadProblem(resp) // typed
	}
	// A stream can die while its session lives, which no ping would show.
	silent := time.AfterFunc(OrdersSilence, func() { cancel(ErrSilent) })
	defer silent.Stop()
	known := maps.Clone(have)
	if known == nil {
		known = map[string]int64{}
	}
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := readLine(lines, tunnel.MaxOrderLine)
		if err != nil {
			return errors.Join(fmt.Errorf("read orders: %w", err), context.Cause(ctx))
		}
		silent.Reset(OrdersSilence)
		var event tunnel.OrderEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return fmt.Errorf("read orders: %w", err)
		}
		if err := s.take(ctx, event, known); err != nil {
			return err
		}
	}
}

// take handles one line. known is what the hub has, as far as it was sent.
func (s *session) take(ctx context.Context, event tunnel.OrderEvent, known map[string]int64) error {
	switch {
	case event.Order != nil:
		return s.takeOrder(ctx, *event.Order, known)
	case event.Head != nil:
		return s.takeHead(ctx, *event.Head, known)
	case event.GoAway != nil:
		s.goAway(*event.GoAway)
		return nil
	case len(event.Present) > 0:
		if s.link.opts.Holder != nil {
			s.asked.add(event.Present)
		}
		return nil
	}
	for _, uid := range event.Unknown {
		delete(known, uid)
	}
	return nil
}

func (s *session) takeOrder(ctx context.Context, signed tunnel.Signed, known map[string]int64) error {
	log := logr.FromContextOrDiscard(ctx)
	order, parsed := tunnel.ParseOrder(signed.Payload)
	if err := errors.Join(tunnel.Verify(signed, tunnel.TypeOrder, s.keys), parsed); err != nil {
		s.link.metrics.orders.WithLabelValues("forged").Inc()
		log.Info("order refused", "release", order.Release.Namespace+"/"+order.Release.Name, "sequence", order.Sequence, "cause", err.Error())
		if parsed != nil {
			return nil // names no Release that could be told
		}
		s.link.opts.Reporting.Refuse(order.Release, order.Sequence, tunnel.Finding{
			Status: tunnel.False, Reason: v1alpha1.ReasonOrderRefused, Message: "the order's signature does not verify with a key that this agent trusts",
		})
	} else if err := s.link.opts.Engine.Accept(order, signed); err != nil {
		s.link.metrics.orders.WithLabelValues("refused").Inc()
		log.Info("order refused", "release", order.Release.Namespace+"/"+order.Release.Name, "sequence", order.Sequence, "cause", err.Error())
	} else {
		s.link.metrics.orders.WithLabelValues("accepted").Inc()
	}
	// Delivered all the same: what the head is compared with.
	if _, ok := known[order.Release.UID]; !ok && len(known) >= tunnel.MaxOrders {
		return fmt.Errorf("%w: more than %d orders", tunnel.ErrTooLong, tunnel.MaxOrders)
	}
	known[order.Release.UID] = order.Sequence
	return nil
}

func (s *session) takeHead(ctx context.Context, signed tunnel.Signed, known map[string]int64) error {
	count := func(result string) { s.link.metrics.heads.WithLabelValues(result).Inc() }
	head, parsed := tunnel.ParseHead(signed.Payload)
	if err := errors.Join(tunnel.Verify(signed, tunnel.TypeHead, s.keys), parsed); err != nil {
		count("forged")
		return fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	switch {
	case head.Hub != s.id.Hub || head.ClusterUID != s.id.ClusterUID:
		count("foreign")
		return fmt.Errorf("%w: the head is for another cluster", ErrIncomplete)
	case !s.link.now().Before(head.ExpiresAt):
		// Workloads do not depend on it; that it is old is seen by its absence.
		count("stale")
		logr.FromContextOrDiscard(ctx).Info("stale head ignored", "expired", head.ExpiresAt)
		return nil
	case head.Count != len(known) || head.Hash != tunnel.HashOrders(known):
		count("incomplete")
		return fmt.Errorf("%w: %d signed for, %d delivered", ErrIncomplete, head.Count, len(known))
	}
	count("accepted")
	s.link.metrics.headEnd.Set(float64(head.ExpiresAt.Unix()))
	s.link.opts.Engine.Head(head, maps.Clone(known))
	return nil
}

// readLine reads a line of at most limit bytes.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, fmt.Errorf("line of more than %d bytes: %w", limit, tunnel.ErrTooLong)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err // said by the caller
		}
	}
}
