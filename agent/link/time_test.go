// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"net"
	"testing"
	"time"

	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

// fake runs a test under a fake clock, with hub and agent on pipes.
func fake(t *testing.T, test func(t *testing.T, r *rig), changes ...func(*gatewaytest.Hub, *gateway.Options)) {
	t.Helper()
	gatewaytest.FakeClock(t, func(t *testing.T) {
		pipes := gatewaytest.NewPipes()
		r := setUp(t, append(changes, func(_ *gatewaytest.Hub, o *gateway.Options) { o.Listener, o.Plain = pipes, true })...)
		r.dial.Store(&dialer{pipes.Dial})
		r.options.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return r.dial.Load().dial(ctx, network, addr)
		}
		r.options.GatewayURL = "ws://hub.example"
		fleet := link.DefaultBackoff()
		r.options.Backoff = &fleet
		test(t, r)
	})
}

type dialer struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// restartAfter stops the hub of a fake clock for a while.
func (r *rig) restartAfter(t *testing.T, away time.Duration) *gateway.Gateway {
	t.Helper()
	if err := r.stopHub(); err != nil {
		t.Fatal(err)
	}
	r.dial.Store(&dialer{refuseAll})
	pass(away)
	pipes := gatewaytest.NewPipes()
	o := r.Options()
	o.Listener, o.Plain = pipes, true
	g, _, stop, err := gatewaytest.Start(r.ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	r.gateway, r.stopHub = g, stop
	r.dial.Store(&dialer{pipes.Dial})
	return g
}

func pass(d time.Duration) { <-time.After(d) }

func leafOf(t *testing.T, id *link.Identity) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(id.Certificate)
	if block == nil {
		t.Fatal("no certificate")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func TestACertificateIsRenewedInTimeWithANewKeyAndTheSessionRecycled(t *testing.T) {
	fake(t, func(t *testing.T, r *rig) {
		r.run(t)
		pass(time.Second)
		first := r.store.get()
		life := leafOf(t, first).NotAfter.Sub(leafOf(t, first).NotBefore)
		pass(time.Duration(float64(life)*tunnel.RenewFrom) - 10*time.Minute)
		if got := r.store.get(); !bytes.Equal(got.Certificate, first.Certificate) {
			t.Error("renewed too early")
		}
		pass(time.Duration(float64(life) * (tunnel.RenewTo - tunnel.RenewFrom)))
		second := r.store.get()
		if bytes.Equal(second.Certificate, first.Certificate) || bytes.Equal(second.ClientKey, first.ClientKey) {
			t.Fatal("not renewed, or with the same key")
		}
		if !bytes.Equal(second.BoundKey, first.BoundKey) {
			t.Error("the bound key has changed")
		}
		info, ok := r.gateway.Sessions().Info(r.id.UID)
		if !ok {
			t.Fatal("no session")
		}
		// A week: sessions are made anew in time, without a refusal or a pause.
		down := time.Duration(0)
		for range 7 * 24 * 60 {
			pass(time.Minute)
			if !r.link.Connected() {
				down += time.Minute
			}
		}
		if down > 0 {
			t.Errorf("without a session for %s in a week", down)
		}
		if now, ok := r.gateway.Sessions().Info(r.id.UID); !ok || !now.Since.After(info.Since.Add(5*24*time.Hour)) {
			t.Error("the session was not made anew")
		}
	})
}

func TestAnIdleSessionCostsLittleOnTheWire(t *testing.T) {
	fake(t, func(t *testing.T, r *rig) {
		r.order(t, "a", 1)
		r.run(t)
		pass(time.Minute)
		before, _ := r.gateway.Sessions().Info(r.id.UID)
		for range time.Hour / (tunnel.HeadTTL / 2) {
			pass(tunnel.HeadTTL / 2)
			r.Renew(r.id.UID)
		}
		after, ok := r.gateway.Sessions().Info(r.id.UID)
		if !ok || !after.Since.Equal(before.Since) {
			t.Fatal("the session was lost")
		}
		day := 24 * (after.In - before.In + after.Out - before.Out)
		t.Logf("%d KiB a day inside the websocket", day>>10)
		if day > 512<<10 {
			t.Errorf("%d KiB a day, want 512 at most", day>>10)
		}
	})
}

func TestAHubThatStopsAnsweringIsLeft(t *testing.T) {
	fake(t, func(t *testing.T, r *rig) {
		r.run(t)
		pass(time.Second)
		if !r.link.Connected() {
			t.Fatal("no session")
		}
		if err := r.stopHub(); err != nil {
			t.Fatal(err)
		}
		pass(tunnel.ReadSilence + tunnel.WriteTimeout)
		if r.link.Connected() {
			t.Error("still believes in the session")
		}
	})
}

func TestABoxThatBootedIn1970FindsItsHub(t *testing.T) {
	fake(t, func(t *testing.T, r *rig) {
		stop := r.run(t)
		pass(time.Second)
		stop()
		r.order(t, "a", 1)
		booted := time.Now()
		r.options.Now = func() time.Time { return time.Unix(0, 0).Add(time.Since(booted)) }
		r.run(t)
		pass(link.DefaultBackoff().Start + 5*time.Second)
		if r.engine.Have()["a"] != 1 {
			t.Error("no order arrived")
		}
	})
}

func TestABoxThatBootedIn1970Joins(t *testing.T) {
	fake(t, func(t *testing.T, r *rig) {
		built := time.Now()
		r.order(t, "a", 1)
		r.options.Now = func() time.Time { return time.Unix(0, 0) }
		r.options.Built = built
		r.run(t)
		pass(5 * time.Second)
		if r.engine.Have()["a"] != 1 {
			t.Error("a first join under a clock of 1970 did not work")
		}
	})
}

func TestASiteThatWasDarkForAWeekComesBackByItself(t *testing.T) {
	fake(t, func(t *testing.T, r *rig) {
		stop := r.run(t)
		pass(time.Second)
		stop()
		pass(7 * 24 * time.Hour)
		r.order(t, "a", 1)
		r.run(t)
		pass(link.DefaultBackoff().Start + 10*time.Second)
		if r.engine.Have()["a"] != 1 {
			t.Error("no order arrived")
		}
	})
}

func TestAnOrdersStreamThatDiedIsOpenedAnew(t *testing.T) {
	fake(t, func(t *testing.T, r *rig) {
		r.order(t, "a", 1)
		r.run(t)
		pass(time.Second)
		since, _ := r.gateway.Sessions().Info(r.id.UID)
		// Half an hour: beats keep the stream, heads are not resent.
		heads := r.engine.headCount()
		pass(30 * time.Minute)
		r.order(t, "a", 2)
		pass(time.Second)
		if r.engine.Have()["a"] != 2 {
			t.Error("an order after half an hour did not arrive")
		}
		if n := r.engine.headCount() - heads; n != 1 {
			t.Errorf("%d heads, want one for the change", n)
		}
		if now, _ := r.gateway.Sessions().Info(r.id.UID); !now.Since.Equal(since.Since) {
			t.Error("the session was lost meanwhile")
		}
	})
}
