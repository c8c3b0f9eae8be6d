// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// holder gives back the signed orders that an engine holds.
type holder interface {
	Held(uids []string) []tunnel.Signed
}

// follow compares what the hub orders with what the engine holds, at each change
// and from time to time, as gateway and link do over the wire.
func (c *cell) follow(ctx context.Context, s *serving) error {
	if err := c.loaded(ctx, s); err != nil {
		return nil //nolint:nilerr // the end was asked for
	}
	c.manager.opts.Status.Connected(c.id)
	again := c.manager.clock.NewTicker(compareEvery)
	defer again.Stop()
	told := map[string]int64{}
	back := false
	for {
		var failed error
		if !back {
			failed = c.giveBack(ctx, s)
			back = failed == nil
		}
		changed, err := c.hand(ctx, s, told)
		var retry <-chan time.Time
		if failed = errors.Join(failed, err); failed != nil {
			// Nothing is lost: the engine keeps what it has, and it is compared again.
			logr.FromContextOrDiscard(ctx).Error(failed, "orders not exchanged, will be tried again")
			retry = c.manager.clock.After(retryMax)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-retry:
		case <-again.C():
			clear(told)
			back = false
		}
	}
}

// hand gives the engine what it does not have, and the head that proves it. told is
// what it was given before, accepted or not.
func (c *cell) hand(ctx context.Context, s *serving, told map[string]int64) (<-chan struct{}, error) {
	m := c.manager
	orders, head, changed := m.opts.Orders.Current(string(c.uid))
	have := s.runner.Have()
	current := make(map[string]int64, len(orders))
	for i := range orders {
		o := &orders[i]
		current[o.UID] = o.Sequence
		if have[o.UID] == o.Sequence || told[o.UID] == o.Sequence {
			continue
		}
		told[o.UID] = o.Sequence
		c.handOne(ctx, s, o)
	}
	for uid := range told {
		if _, ok := current[uid]; !ok {
			delete(told, uid)
		}
	}
	if head.Payload == nil {
		return changed, nil
	}
	parsed, err := tunnel.ParseHead(head.Payload)
	if err = errors.Join(tunnel.Verify(head, tunnel.TypeHead, m.opts.OrderKeys()), err); err != nil {
		return changed, fmt.Errorf("head: %w", err)
	}
	if parsed.Hub != m.opts.HubID || parsed.ClusterUID != string(c.uid) || parsed.Count != len(current) || parsed.Hash != tunnel.HashOrders(current) {
		return changed, errors.New("the head is not over these orders")
	}
	if m.clock.Now().Before(parsed.ExpiresAt) {
		s.runner.Head(parsed, current) //nolint:contextcheck // the Runner works in the context of its own run
	}
	return changed, nil
}

func (c *cell) handOne(ctx context.Context, s *serving, o *tunnel.SignedOrder) {
	m := c.manager
	log := logr.FromContextOrDiscard(ctx)
	order, parsed := tunnel.ParseOrder(o.Signed.Payload)
	err := errors.Join(m.verify(o.Signed), parsed)
	switch {
	case err != nil && parsed == nil:
		m.metrics.orders.WithLabelValues("forged").Inc()
		log.Error(err, "order refused", "release", order.Release.Namespace+"/"+order.Release.Name, "sequence", order.Sequence)
		s.runner.Refuse(order.Release, order.Sequence, tunnel.Finding{ //nolint:contextcheck // the engine works under the context of its Run
			Status: tunnel.False, Reason: v1alpha1.ReasonOrderRefused, Message: "the order's signature does not verify with a key of this hub",
		})
	case err != nil:
		m.metrics.orders.WithLabelValues("forged").Inc()
		log.Error(err, "order refused", "sequence", o.Sequence)
	default:
		if err := s.runner.Accept(order, o.Signed); err != nil { //nolint:contextcheck // the engine works under the context of its Run
			m.metrics.orders.WithLabelValues("refused").Inc()
			return // the engine reports and logs it
		}
		m.metrics.orders.WithLabelValues("accepted").Inc()
	}
}

// giveBack says what the engine holds, and lets a hub that was restored from an
// older copy take back what it has lost. It comes before older orders would be
// handed over.
func (c *cell) giveBack(ctx context.Context, s *serving) error {
	m := c.manager
	behind := m.opts.Orders.Behind(string(c.uid), s.runner.Have())
	keeper, ok := any(s.runner).(holder)
	if m.opts.Held == nil || !ok {
		return nil
	}
	for len(behind) > 0 {
		n := min(len(behind), tunnel.MaxHeld)
		held := keeper.Held(behind[:n])
		behind = behind[n:]
		if len(held) == 0 {
			continue
		}
		if err := m.opts.Held.Take(ctx, c.id, held); err != nil {
			return fmt.Errorf("held orders were not taken back: %w", err)
		}
		logr.FromContextOrDiscard(ctx).Info("held orders given back to a hub that is behind", "count", len(held))
	}
	return nil
}
