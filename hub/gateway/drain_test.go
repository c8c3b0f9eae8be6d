// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

// drained is a gateway under a fake clock that can be stopped, with agents.
func drained(t *testing.T, agents int, test func(stop func() error, sessions []*tunnel.Session, streams []*stream)) {
	t.Helper()
	gatewaytest.FakeClock(t, func(t *testing.T) {
		hub, err := gatewaytest.NewHub()
		if err != nil {
			t.Fatal(err)
		}
		pipes := gatewaytest.NewPipes()
		o := hub.Options()
		o.Listener, o.Plain, o.DrainTimeout = pipes, true, gateway.DrainTimeout
		g, _, stop, err := gatewaytest.Start(context.WithoutCancel(t.Context()), o)
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{Hub: hub, gateway: g, url: "ws://hub.example", ctx: t.Context()}
		var sessions []*tunnel.Session
		var streams []*stream
		for i := range agents {
			_, name := gatewaytest.Names(i)
			_, p := r.cluster(t, name)
			p.Connect = pipes.Dial
			if err := p.Join(r.ctx, false); err != nil {
				t.Fatal(err)
			}
			s, c := r.open(t, p)
			follow := orders(t, r, c, nil)
			follow.set()
			sessions, streams = append(sessions, s), append(streams, follow)
		}
		test(stop, sessions, streams)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnOrderedEndAsksAgentsToGoAndWaitsForThem(t *testing.T) {
	drained(t, 2, func(stop func() error, sessions []*tunnel.Session, streams []*stream) {
		ended := make(chan error, 1)
		go func() { ended <- stop() }()
		for _, s := range streams {
			e := s.next()
			for e.Beat {
				e = s.next()
			}
			if e.GoAway == nil || e.GoAway.WithinSeconds != int64(gateway.DrainWithin.Seconds()) || e.GoAway.Reason == "" {
				t.Fatalf("got %+v", e)
			}
		}
		synctest.Wait()
		for i, s := range sessions {
			select {
			case err := <-ended:
				t.Fatalf("ended while agents were there: %v", err)
			default:
			}
			if _, err := s.Ping(); err != nil {
				t.Errorf("agent %d was cut off: %v", i, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		began := time.Now()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took >= gateway.DrainTimeout {
			t.Errorf("the end came %s after the last agent had gone", took)
		}
	})
}

func TestAnOrderedEndCutsOffWhoDoesNotGo(t *testing.T) {
	drained(t, 1, func(stop func() error, sessions []*tunnel.Session, streams []*stream) {
		began := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < gateway.DrainTimeout || took > gateway.DrainTimeout+tunnel.HandshakeTimeout {
			t.Errorf("the end took %s", took)
		}
		select {
		case <-sessions[0].Done():
		default:
			<-sessions[0].Done()
		}
		streams[0].close()
	})
}
