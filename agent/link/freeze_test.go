// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

// frozen shows an agent what there was at first, for ever.
type frozen struct {
	gateway.Orders
	orders []tunnel.SignedOrder
	head   *tunnel.Signed
}

func (f *frozen) Current(uid string) ([]tunnel.SignedOrder, tunnel.Signed, <-chan struct{}) {
	orders, head, _ := f.Orders.Current(uid)
	if f.head == nil {
		f.orders, f.head = orders, &head
	}
	return f.orders, *f.head, nil // the beats go on, so that nothing looks cut off
}

func TestWhoHoldsNewerOrdersBackIsSeenWithinTwentyMinutesAndNothingElseHappens(t *testing.T) {
	fake(t, func(t *testing.T, r *rig) {
		registry := prometheus.NewRegistry()
		r.options.Registerer = registry
		r.order(t, "a", 1)
		r.run(t)
		pass(time.Second)
		expiry := func() time.Time {
			t.Helper()
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				if f.GetName() == "convoy_link_head_expiry_timestamp_seconds" {
					return time.Unix(int64(f.GetMetric()[0].GetGauge().GetValue()), 0)
				}
			}
			t.Fatal("there is no such metric")
			return time.Time{}
		}
		if !expiry().After(time.Now()) {
			t.Errorf("at first the list is good until %s, now is %s", expiry(), time.Now())
		}
		heads := r.engine.headCount()
		r.order(t, "a", 2)
		r.order(t, "b", 3)
		pass(20 * time.Minute)
		synctest.Wait()
		if !expiry().Before(time.Now()) {
			t.Errorf("after twenty minutes the list is still good until %s", expiry())
		}
		if got := r.engine.Have(); len(got) != 1 || got["a"] != 1 {
			t.Errorf("the agent holds %v, want what it held", got)
		}
		if !r.link.Connected() {
			t.Error("the session was lost")
		}
		if n := r.engine.headCount() - heads; n != 0 {
			t.Errorf("%d heads were handed on", n)
		}
	}, func(h *gatewaytest.Hub, o *gateway.Options) { o.Orders = &frozen{Orders: h} })
}
